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

use std::collections::HashMap;

use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive;

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

#[derive(Clone, Debug)]
struct Account {
    parent: Option<RunId>,
    allowance: Allowance,
    spent: Usage,
    reserved_tokens: u64,
    reserved_cost: Decimal,
    /// What those below it leave to it.
    kept_tokens: u64,
    kept_cost: Decimal,
    tool_calls: u32,
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

/// How long an answer there is room for.
struct Room {
    /// Beside what others have set aside.
    now: u64,
    /// If they had not.
    alone: u64,
}

impl Account {
    fn new(parent: Option<RunId>, spent: Usage) -> Self {
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

    fn room_in_tokens(&self, wish: &Wish, kept: u64) -> Option<(Limit, Room)> {
        let limit = self.allowance.tokens?.saturating_sub(kept);
        let used = self.spent.input_tokens.saturating_add(self.spent.output_tokens);
        let alone = limit.saturating_sub(used).saturating_sub(wish.input);
        let now = alone.saturating_sub(self.reserved_tokens);
        Some((Limit::Tokens, Room { now, alone }))
    }

    /// Without a price, nothing is affordable.
    fn room_in_money(&self, wish: &Wish, kept: Decimal) -> Option<(Limit, Room)> {
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
fn affordable(left: Decimal, price: Price) -> Option<u64> {
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

/// Writes an amount as people read it.
fn shown(money: Money) -> Money {
    Money::new(money.amount().round_dp(6).normalize())
}

/// The dearest way in which a provider may charge something.
fn dearest(price: Price, used: Usage) -> Money {
    let fresh = Usage { cache_write_tokens: 0, ..used };
    price.of(&used).max(price.of(&fresh))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn money(text: &str) -> Money {
        text.parse().unwrap()
    }

    fn tokens(limit: u64) -> Allowance {
        Allowance { tokens: Some(limit), ..Allowance::default() }
    }

    fn wish(input: u64, output: u64) -> Wish {
        Wish { input, output, price: None }
    }

    fn granted(verdict: Verdict) -> Reservation {
        match verdict {
            Verdict::Granted(reservation) => reservation,
            other => panic!("{other:?}"),
        }
    }

    fn used(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    #[test]
    fn many_children_cannot_pass_the_limit_of_their_parent() {
        let (root, mut ledger) = (RunId::new("root"), BudgetLedger::default());
        ledger.open(&root, None, tokens(1_000));
        let children: Vec<RunId> = (0..32).map(|n| RunId::new(format!("child-{n}"))).collect();
        for child in &children {
            ledger.open(child, Some(&root), Allowance::default());
        }
        let first: Vec<Verdict> =
            children.iter().map(|child| ledger.reserve(child, &wish(100, 200))).collect();
        let started = first.iter().filter(|one| matches!(one, Verdict::Granted(_))).count();
        assert_eq!(started, 3, "three times 300 fit, the rest waits");
        assert!(first.iter().skip(3).all(|one| *one == Verdict::Wait));
        for verdict in first.into_iter().take(3) {
            ledger.settle(granted(verdict), used(100, 100));
        }
        let fourth = granted(ledger.reserve(&children[3], &wish(100, 200)));
        ledger.settle(fourth, used(100, 200));
        let last = ledger.reserve(&children[4], &wish(100, 200));
        assert_eq!(last, Verdict::Refused { limit: Limit::Tokens, of: root.clone() });
        assert_eq!(ledger.spent(&root), used(400, 500));
    }

    #[test]
    fn children_leave_their_caller_what_it_keeps_for_itself() {
        let price =
            Price { input: money("1"), cached_input: None, cache_write: None, output: money("10") };
        let (root, child) = (RunId::new("root"), RunId::new("child"));
        let mut ledger = BudgetLedger::default();
        let allowance =
            Allowance { tokens: Some(1_000), cost: Some(money("0.01")), tool_calls: None };
        ledger.open(&root, None, allowance);
        ledger.open(&child, Some(&root), Allowance::default());
        ledger.keep(&root, 250, Money::default());
        let asked = |output| Wish { input: 100, output, price: Some(price) };
        let first = granted(ledger.reserve(&child, &asked(8_000)));
        assert_eq!(first.max_output, Some(650), "1000 - 250 - 100");
        ledger.settle(first, Usage { cost: Some(money("0.0001")), ..used(100, 600) });
        let refused = |limit| Verdict::Refused { limit, of: root.clone() };
        assert_eq!(ledger.reserve(&child, &asked(64)), refused(Limit::Tokens));
        assert_eq!(
            ledger.shortage((&child, &root), Limit::Tokens, &asked(64)).as_deref(),
            Some(
                "of 1000 tokens 700 are used, 250 are kept for the caller's answer; one request takes 164 or more"
            )
        );
        assert_eq!(ledger.short_above(&child, Limit::Tokens, &asked(64)), Some(root.clone()));
        assert_eq!(ledger.short_above(&child, Limit::Cost, &asked(64)), None, "there is money");
        assert_eq!(
            ledger.short_above(&root, Limit::Tokens, &asked(64)),
            None,
            "nobody is above it"
        );
        let own = granted(ledger.reserve(&root, &asked(8_000)));
        assert_eq!(own.max_output, Some(200), "all that is left is its own");
        ledger.settle(own, Usage { cost: Some(money("0")), ..Usage::default() });
        ledger.keep(&root, 0, money("0.0095"));
        assert_eq!(ledger.reserve(&child, &asked(64)), refused(Limit::Cost));
        assert_eq!(
            ledger.shortage((&child, &root), Limit::Cost, &asked(64)).as_deref(),
            Some(
                "of $0.01 $0.0001 is used, $0.0095 is kept for the caller's answer; one request may cost $0.00074 or \
                 more"
            )
        );
        assert!(matches!(ledger.reserve(&root, &asked(64)), Verdict::Granted(_)));
    }

    #[test]
    fn what_was_used_before_counts_and_what_was_set_aside_does_not() {
        let (root, child) = (RunId::new("root"), RunId::new("child"));
        let mut ledger = BudgetLedger::default();
        let allowance = Allowance { tokens: Some(1_000), tool_calls: Some(3), cost: None };
        ledger.open(&root, None, allowance);
        ledger.open(&child, Some(&root), allowance);
        ledger.charge(&root, used(200, 300));
        ledger.charge(&child, used(100, 100));
        assert_eq!(granted(ledger.reserve(&child, &wish(100, 200))).tokens(), 300);
        assert_eq!(ledger.take_calls(&child, 2), Ok(2));
        let mut ledger = ledger.at_rest();
        assert!(ledger.is_free(&child), "what they may use is said anew");
        ledger.open(&root, None, allowance);
        ledger.open(&child, Some(&root), allowance);
        assert_eq!((ledger.spent(&root), ledger.spent(&child)), (used(300, 400), used(100, 100)));
        let refused = Verdict::Refused { limit: Limit::Tokens, of: root.clone() };
        assert_eq!(ledger.reserve(&child, &wish(300, 100)), refused);
        assert_eq!(granted(ledger.reserve(&child, &wish(100, 200))).tokens(), 300);
        ledger.note_calls(&root, 2);
        assert_eq!(ledger.take_calls(&child, 2), Ok(1), "the caller has made two of three");
        ledger.renew_calls(&child);
        assert_eq!(ledger.take_calls(&child, 1), Err(root), "for the caller they were made");
    }

    #[test]
    fn a_last_answer_is_as_long_as_there_is_room_for() {
        let (root, mut ledger) = (RunId::new("root"), BudgetLedger::default());
        ledger.open(&root, None, tokens(300));
        let reservation = granted(ledger.reserve(&root, &wish(100, 8_000)));
        assert_eq!(reservation.max_output, Some(200));
        ledger.settle(reservation, used(100, 10));
        assert!(!ledger.is_free(&root));
    }

    #[test]
    fn an_unknown_price_is_never_affordable() {
        let (root, mut ledger) = (RunId::new("root"), BudgetLedger::default());
        ledger.open(&root, None, Allowance { cost: Some(money("1")), ..Allowance::default() });
        let refused = Verdict::Refused { limit: Limit::Cost, of: root.clone() };
        assert_eq!(ledger.reserve(&root, &wish(1, 100)), refused);
        let price = Price {
            input: money("1"),
            cached_input: None,
            cache_write: Some(money("2")),
            output: money("10"),
        };
        let asked = Wish { input: 100_000, output: 1_000_000, price: Some(price) };
        let reservation = granted(ledger.reserve(&root, &asked));
        assert_eq!(reservation.max_output, Some(80_000), "0.2 for the question at its dearest");
        ledger.settle(reservation, Usage { cost: None, ..used(100, 100) });
        assert_eq!(ledger.reserve(&root, &asked), refused, "nobody knows what was spent");
    }

    #[test]
    fn a_child_is_held_by_its_own_limit_as_well() {
        let (root, child) = (RunId::new("root"), RunId::new("child"));
        let mut ledger = BudgetLedger::default();
        ledger.open(&root, None, tokens(10_000));
        ledger.open(&child, Some(&root), tokens(500));
        ledger.charge(&child, used(300, 100));
        let verdict = ledger.reserve(&child, &wish(50, 100));
        assert_eq!(verdict, Verdict::Refused { limit: Limit::Tokens, of: child });
        assert_eq!(ledger.spent(&root), used(300, 100));
    }

    #[test]
    fn calls_are_counted_at_every_level() {
        let (root, mut ledger) = (RunId::new("root"), BudgetLedger::default());
        ledger.open(&root, None, Allowance { tool_calls: Some(5), ..Allowance::default() });
        let children: Vec<RunId> = (0..3).map(|n| RunId::new(format!("child-{n}"))).collect();
        for child in &children {
            ledger.open(child, Some(&root), Allowance::default());
        }
        assert_eq!(ledger.take_calls(&children[0], 3), Ok(3));
        assert_eq!(ledger.take_calls(&children[1], 3), Ok(2), "as many as there is room for");
        assert_eq!(ledger.take_calls(&children[2], 1), Err(root));
    }

    proptest! {
        /// Whatever the tree and whoever asks: what is spent and set aside never passes a limit.
        #[test]
        fn nothing_passes_a_limit(
            parents in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
            limits in prop::collection::vec(prop::option::of(200_u64..5_000), 13),
            shares in prop::collection::vec(0_u64..1_500, 13),
            asks in prop::collection::vec(
                (any::<prop::sample::Index>(), 1_u64..400, 64_u64..900, 0_u64..=100, any::<bool>()),
                1..120,
            ),
        ) {
            let mut ledger = BudgetLedger::default();
            let runs: Vec<RunId> = (0..=parents.len()).map(|n| RunId::new(n.to_string())).collect();
            for (index, run) in runs.iter().enumerate() {
                let parent = index.checked_sub(1).map(|before| parents[before].index(index));
                let allowance = Allowance { tokens: limits[index], ..Allowance::default() };
                ledger.open(run, parent.map(|parent| &runs[parent]), allowance);
                ledger.keep(run, shares[index], Money::default());
            }
            let mut open: Vec<(Reservation, u64, u64)> = Vec::new();
            for (who, input, output, percent, settle_one) in asks {
                let run = &runs[who.index(runs.len())];
                let above: Vec<RunId> =
                    ledger.upward(run).skip(1).map(|(above, _)| above.clone()).collect();
                if let Verdict::Granted(reservation) = ledger.reserve(run, &wish(input, output)) {
                    let most = reservation.max_output.unwrap_or(output);
                    prop_assert!(most <= output);
                    // Whoever is further up has kept its share.
                    for above in above {
                        let account = &ledger.accounts[&above];
                        let spent = account.spent.input_tokens + account.spent.output_tokens;
                        let total = spent + account.reserved_tokens + account.kept_tokens;
                        let limit = account.allowance.tokens;
                        prop_assert!(limit.is_none_or(|limit| total <= limit), "{above}: {total}");
                    }
                    open.push((reservation, input, most * percent / 100));
                }
                if settle_one && let Some((reservation, input, output)) = open.pop() {
                    ledger.settle(reservation, used(input, output));
                }
                for (run, limit) in runs.iter().zip(&limits) {
                    let account = &ledger.accounts[run];
                    let spent = account.spent.input_tokens + account.spent.output_tokens;
                    let total = spent + account.reserved_tokens;
                    prop_assert!(limit.is_none_or(|limit| total <= limit), "{run}: {total}");
                }
            }
            for (reservation, input, output) in open {
                ledger.settle(reservation, used(input, output));
            }
            prop_assert!(ledger.accounts.values().all(|account| account.reserved_tokens == 0));
        }
    }
}
