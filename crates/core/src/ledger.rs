//! What a whole tree of runs may use, and has used: one ledger for all of them.
//!
//! Before a run asks its model, it reserves what the question and the longest answer would take, with itself
//! and with everybody above it. Nothing is granted that would let anybody's spending pass their limit,
//! however many ask at once. When the answer is there, what it really took is settled.
//!
//! Of what a run may use, those below it leave a share to the run itself ([`BudgetLedger::keep`]), so that it can
//! still make something of what they found.
//!
//! Pure: it knows neither a clock nor who waits. Whoever is told to wait asks again when something was
//! settled.

mod account;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use rust_decimal::Decimal;

use self::account::Account;
pub(crate) use self::account::{affordable, dearest};
use crate::id::RunId;
use crate::run::Limit;
use crate::usage::{Money, Price, Usage};

/// The shortest answer worth asking for, in tokens.
pub const MIN_OUTPUT: u64 = 64;

/// What a run and all runs below it may use. What is absent is not limited here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// Tokens, sent and received.
    pub tokens: Option<u64>,
    /// Money.
    pub cost: Option<Money>,
    /// Calls of tools.
    pub tool_calls: Option<u32>,
}

/// What a use of a model would take.
#[derive(Clone, Copy, Debug)]
pub struct Wish {
    /// Tokens that are sent, as estimated.
    pub input: u64,
    /// The longest answer wanted, in tokens.
    pub output: u64,
    /// What the model costs, where that is known.
    pub price: Option<Price>,
}

/// What was reserved. It is given back by [`BudgetLedger::settle`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "what is never settled stays reserved"]
pub struct Reservation {
    run: RunId,
    tokens: u64,
    cost: Money,
    /// The longest answer that is paid for; nothing, where nobody above is limited.
    pub max_output: Option<u64>,
}

impl Reservation {
    /// Returns how many tokens are set aside.
    pub const fn tokens(&self) -> u64 {
        self.tokens
    }
}

/// What the ledger says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may be asked.
    Granted(Reservation),
    /// It may be asked when others have settled: what they set aside may not all be used.
    Wait,
    /// It may not be asked.
    Refused {
        /// Which limit stands in the way.
        limit: Limit,
        /// Whose limit it is.
        of: RunId,
    },
}

/// The accounts of a tree of runs.
#[derive(Clone, Debug, Default)]
pub struct BudgetLedger {
    accounts: HashMap<RunId, Account>,
}

impl BudgetLedger {
    /// Opens an account, or changes what an open one may use. A run without a parent is the root.
    pub fn open(&mut self, run: &RunId, parent: Option<&RunId>, allowance: Allowance) {
        let new = || Account::new(parent.cloned(), Usage::default());
        self.accounts.entry(run.clone()).or_insert_with(new).allowance = allowance;
    }

    /// Keeps so much of what a run may use for itself: runs below it are granted nothing of that.
    pub fn keep(&mut self, run: &RunId, tokens: u64, cost: Money) {
        if let Some(account) = self.accounts.get_mut(run) {
            (account.kept_tokens, account.kept_cost) = (tokens, cost.amount());
        }
    }

    /// Tells whether nobody, from this run up to the root, is limited.
    pub fn is_free(&self, run: &RunId) -> bool {
        let limited = |account: &Account| {
            account.allowance.tokens.is_some() || account.allowance.cost.is_some()
        };
        !self.upward(run).any(|(_, account)| limited(account))
    }

    /// Sets aside what a use of the model takes, with the run and everybody above it.
    pub fn reserve(&mut self, run: &RunId, wish: &Wish) -> Verdict {
        let mut output = wish.output;
        let mut limited = false;
        for (holder, account) in self.upward(run) {
            let (kept_tokens, kept_cost) = if holder == run {
                (0, Decimal::ZERO)
            } else {
                (account.kept_tokens, account.kept_cost)
            };
            let rooms =
                [account.room_in_tokens(wish, kept_tokens), account.room_in_money(wish, kept_cost)];
            for room in rooms {
                let Some((limit, room)) = room else { continue };
                limited = true;
                if room.alone < MIN_OUTPUT {
                    return Verdict::Refused { limit, of: holder.clone() };
                }
                // Part of what stands in the way will come back: better a whole answer later.
                if room.now < wish.output && room.now < room.alone {
                    return Verdict::Wait;
                }
                output = output.min(room.now);
            }
        }
        let used = Usage {
            input_tokens: wish.input,
            cache_write_tokens: wish.input,
            output_tokens: output,
            ..Usage::default()
        };
        let cost = wish.price.map(|price| dearest(price, used)).unwrap_or_default();
        let tokens = wish.input.saturating_add(output);
        let reservation =
            Reservation { run: run.clone(), tokens, cost, max_output: limited.then_some(output) };
        self.change(run, |account| {
            account.reserved_tokens = account.reserved_tokens.saturating_add(tokens);
            account.reserved_cost = account.reserved_cost.saturating_add(cost.amount());
        });
        Verdict::Granted(reservation)
    }

    /// Returns whose limit, of those above a run, leaves nothing for a wish, whatever others have set aside.
    pub fn short_above(&self, run: &RunId, limit: Limit, wish: &Wish) -> Option<RunId> {
        let is_short = |account: &Account| {
            let room = match limit {
                Limit::Tokens => account.room_in_tokens(wish, account.kept_tokens),
                Limit::Cost => account.room_in_money(wish, account.kept_cost),
                _ => None,
            };
            room.is_some_and(|(_, room)| room.alone < MIN_OUTPUT)
        };
        let mut above = self.upward(run).skip(1);
        above.find(|&(_, account)| is_short(account)).map(|(holder, _)| holder.clone())
    }

    /// Says in words why a wish of a run was refused that is within nobody's means: what the run whose limit it is may
    /// use, has used and keeps for itself, and what the shortest request takes.
    pub fn shortage(
        &self,
        (run, of): (&RunId, &RunId),
        limit: Limit,
        wish: &Wish,
    ) -> Option<String> {
        let account = self.accounts.get(of)?;
        let keeps = run != of;
        match limit {
            Limit::Tokens => {
                let spent = account.spent;
                let used = spent.input_tokens.saturating_add(spent.output_tokens);
                let kept = (keeps && account.kept_tokens > 0).then_some(account.kept_tokens);
                let kept = kept.map(|kept| format!(", {kept} are kept for the caller's answer"));
                Some(format!(
                    "of {} tokens {used} are used{}; one request takes {} or more",
                    account.allowance.tokens?,
                    kept.unwrap_or_default(),
                    wish.input.saturating_add(MIN_OUTPUT)
                ))
            }
            Limit::Cost => {
                let price = wish.price?;
                let kept = (keeps && !account.kept_cost.is_zero()).then_some(account.kept_cost);
                let kept = kept.map(|kept| {
                    format!(", {} is kept for the caller's answer", shown(Money::new(kept)))
                });
                let asked = Usage {
                    input_tokens: wish.input,
                    cache_write_tokens: wish.input,
                    output_tokens: MIN_OUTPUT,
                    ..Usage::default()
                };
                Some(format!(
                    "of {} {} is used{}; one request may cost {} or more",
                    shown(account.allowance.cost?),
                    shown(account.spent.cost.unwrap_or_default()),
                    kept.unwrap_or_default(),
                    shown(dearest(price, asked))
                ))
            }
            _ => None,
        }
    }

    /// Gives back what was set aside, and notes what was really used.
    pub fn settle(&mut self, reservation: Reservation, used: Usage) {
        let Reservation { run, tokens, cost, .. } = reservation;
        self.change(&run, |account| {
            account.reserved_tokens = account.reserved_tokens.saturating_sub(tokens);
            account.reserved_cost = account.reserved_cost.saturating_sub(cost.amount());
            account.spent += used;
        });
    }

    /// Takes room for calls of tools, with the run and everybody above it: as many of these as there is room
    /// for, or whose limit stands in the way of all.
    pub fn take_calls(&mut self, run: &RunId, wanted: u32) -> Result<u32, RunId> {
        let mut granted = wanted;
        for (holder, account) in self.upward(run) {
            let Some(limit) = account.allowance.tool_calls else { continue };
            granted = granted.min(limit.saturating_sub(account.tool_calls));
            if granted == 0 {
                return Err(holder.clone());
            }
        }
        self.change(run, |account| account.tool_calls = account.tool_calls.saturating_add(granted));
        Ok(granted)
    }

    /// Gives back room for calls that were not made, or will be made again.
    pub fn give_back_calls(&mut self, run: &RunId, calls: u32) {
        self.change(run, |account| account.tool_calls = account.tool_calls.saturating_sub(calls));
    }

    /// Returns how many calls of tools every run and all runs below it have made.
    pub fn calls(&self) -> impl Iterator<Item = (&RunId, u32)> {
        self.accounts.iter().map(|(run, account)| (run, account.tool_calls))
    }

    /// Notes how many calls of tools a run and all runs below it have made. Those above it count for themselves.
    pub fn note_calls(&mut self, run: &RunId, calls: u32) {
        if let Some(account) = self.accounts.get_mut(run) {
            account.tool_calls = calls;
        }
    }

    /// Lets a run that goes on after its end make its calls of tools anew. For those above it they were made.
    pub fn renew_calls(&mut self, run: &RunId) {
        self.note_calls(run, 0);
    }

    /// Notes what was used without having been set aside.
    pub fn charge(&mut self, run: &RunId, used: Usage) {
        self.change(run, |account| account.spent += used);
    }

    /// Returns what everybody has used, and nothing else: nobody works, so nothing is set aside, and how many calls
    /// count is for whoever goes on to say.
    #[must_use]
    pub fn at_rest(&self) -> Self {
        let rested = |account: &Account| Account::new(account.parent.clone(), account.spent);
        let accounts = self.accounts.iter().map(|(run, account)| (run.clone(), rested(account)));
        Self { accounts: accounts.collect() }
    }

    /// Returns what a run and all runs below it have used.
    pub fn spent(&self, run: &RunId) -> Usage {
        self.accounts.get(run).map(|account| account.spent).unwrap_or_default()
    }

    fn upward<'a>(&'a self, run: &'a RunId) -> impl Iterator<Item = (&'a RunId, &'a Account)> {
        let first = self.accounts.get_key_value(run);
        std::iter::successors(first, |(_, account)| {
            self.accounts.get_key_value(account.parent.as_ref()?)
        })
    }

    fn change(&mut self, run: &RunId, change: impl Fn(&mut Account)) {
        let mut next = Some(run.clone());
        while let Some(account) = next.as_ref().and_then(|run| self.accounts.get_mut(run)) {
            change(account);
            next = account.parent.clone();
        }
    }
}

/// Writes an amount as people read it.
fn shown(money: Money) -> Money {
    Money::new(money.amount().round_dp(6).normalize())
}
