//! What one run and all runs below it may use, have used and have set aside.

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

use super::{Allowance, Wish};
use crate::id::RunId;
use crate::run::Limit;
use crate::usage::{Money, Price, Usage};

#[derive(Clone, Debug)]
pub(super) struct Account {
    pub(super) parent: Option<RunId>,
    pub(super) allowance: Allowance,
    pub(super) spent: Usage,
    pub(super) reserved_tokens: u64,
    pub(super) reserved_cost: Decimal,
    /// What those below it leave to it.
    pub(super) kept_tokens: u64,
    pub(super) kept_cost: Decimal,
    pub(super) tool_calls: u32,
}

/// How long an answer there is room for.
pub(super) struct Room {
    /// Beside what others have set aside.
    pub(super) now: u64,
    /// If they had not.
    pub(super) alone: u64,
}

impl Account {
    pub(super) fn new(parent: Option<RunId>, spent: Usage) -> Self {
        Self {
            parent,
            allowance: Allowance::default(),
            spent,
            reserved_tokens: 0,
            reserved_cost: Decimal::ZERO,
            kept_tokens: 0,
            kept_cost: Decimal::ZERO,
            tool_calls: 0,
        }
    }

    pub(super) fn room_in_tokens(&self, wish: &Wish, kept: u64) -> Option<(Limit, Room)> {
        let limit = self.allowance.tokens?.saturating_sub(kept);
        let used = self.spent.input_tokens.saturating_add(self.spent.output_tokens);
        let alone = limit.saturating_sub(used).saturating_sub(wish.input);
        let now = alone.saturating_sub(self.reserved_tokens);
        Some((Limit::Tokens, Room { now, alone }))
    }

    /// Without a price, nothing is affordable.
    pub(super) fn room_in_money(&self, wish: &Wish, kept: Decimal) -> Option<(Limit, Room)> {
        let limit = self.allowance.cost?;
        let tokens = |reserved: Decimal| -> Option<u64> {
            let price = wish.price?;
            let spent = match self.spent.cost {
                Some(cost) => cost.amount(),
                None if self.spent.is_empty() => Decimal::ZERO,
                None => return None,
            };
            let asked = Usage {
                input_tokens: wish.input,
                cache_write_tokens: wish.input,
                ..Usage::default()
            };
            let left = limit.amount().checked_sub(kept)?.checked_sub(spent)?;
            let left = left.checked_sub(reserved)?.checked_sub(dearest(price, asked).amount())?;
            affordable(left, price)
        };
        let room = |reserved| tokens(reserved).unwrap_or_default();
        let room = Room { now: room(self.reserved_cost), alone: room(Decimal::ZERO) };
        Some((Limit::Cost, room))
    }
}

/// Returns how many tokens of an answer this much pays for.
pub(crate) fn affordable(left: Decimal, price: Price) -> Option<u64> {
    if left <= Decimal::ZERO {
        return None;
    }
    if price.output.amount().is_zero() {
        return Some(u64::MAX);
    }
    let million = Decimal::from(1_000_000);
    let tokens = left.checked_div(price.output.amount()).and_then(|left| left.checked_mul(million));
    Some(tokens.and_then(|tokens| tokens.floor().to_u64()).unwrap_or(u64::MAX))
}

/// The dearest way in which a provider may charge something.
pub(crate) fn dearest(price: Price, used: Usage) -> Money {
    let fresh = Usage { cache_write_tokens: 0, ..used };
    price.of(&used).max(price.of(&fresh))
}
