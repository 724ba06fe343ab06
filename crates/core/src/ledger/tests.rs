//! Nobody in a tree uses more than they may, whoever asks and in whatever order.

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
    let allowance = Allowance { tokens: Some(1_000), cost: Some(money("0.01")), tool_calls: None };
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
    assert_eq!(ledger.short_above(&root, Limit::Tokens, &asked(64)), None, "nobody is above it");
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
