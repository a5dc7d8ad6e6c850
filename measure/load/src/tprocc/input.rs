//! What a virtual user asks for next.

use super::names::{Uneven, last_name, uneven};
use super::{DISTRICTS, Scale};
use crate::random::Random;

/// The five kinds of transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "their names")]
pub enum Kind {
    NewOrder,
    Payment,
    OrderStatus,
    Delivery,
    StockLevel,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] =
        [Kind::NewOrder, Kind::Payment, Kind::OrderStatus, Kind::Delivery, Kind::StockLevel];

    /// Its share of 23, HammerDB's weights.
    pub fn weight(self) -> u64 {
        match self {
            Kind::NewOrder | Kind::Payment => 10,
            Kind::OrderStatus | Kind::Delivery | Kind::StockLevel => 1,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::NewOrder => "new-order",
            Kind::Payment => "payment",
            Kind::OrderStatus => "order-status",
            Kind::Delivery => "delivery",
            Kind::StockLevel => "stock-level",
        }
    }

    /// Seconds a person types before it, and thinks after it on average, as specified.
    pub fn pauses_s(self) -> (f64, f64) {
        match self {
            Kind::NewOrder => (18.0, 12.0),
            Kind::Payment => (3.0, 12.0),
            Kind::OrderStatus => (2.0, 10.0),
            Kind::Delivery | Kind::StockLevel => (2.0, 5.0),
        }
    }

    fn draw(random: &mut Random) -> Self {
        let mut drawn = random.below(Kind::ALL.iter().map(|kind| kind.weight()).sum());
        for kind in Kind::ALL {
            if drawn < kind.weight() {
                return kind;
            }
            drawn -= kind.weight();
        }
        unreachable!("the weights add up")
    }
}

/// A customer, by number or by last name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "as above")]
pub enum Customer {
    Number(u32),
    LastName(String),
}

/// A line of an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// Whose stock.
    pub supply_warehouse: u32,
    /// What.
    pub item: u32,
    /// How many.
    pub quantity: u32,
}

/// A transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the specification's words")]
pub enum Transaction {
    NewOrder { warehouse: u32, district: u32, customer: u32, lines: Vec<Line> },
    Payment { warehouse: u32, district: u32, of: (u32, u32), customer: Customer, cents: u32 },
    OrderStatus { warehouse: u32, district: u32, customer: Customer },
    Delivery { warehouse: u32, carrier: u32 },
    StockLevel { warehouse: u32, district: u32, threshold: u32 },
}

impl Transaction {
    /// Which kind it is.
    pub fn kind(&self) -> Kind {
        match self {
            Transaction::NewOrder { .. } => Kind::NewOrder,
            Transaction::Payment { .. } => Kind::Payment,
            Transaction::OrderStatus { .. } => Kind::OrderStatus,
            Transaction::Delivery { .. } => Kind::Delivery,
            Transaction::StockLevel { .. } => Kind::StockLevel,
        }
    }
}

/// A virtual user's wishes.
#[derive(Clone, Debug)]
pub struct Wishes {
    scale: Scale,
    home: u32,
    random: Random,
}

impl Wishes {
    /// Of a user at home in a warehouse.
    pub fn new(scale: Scale, home: u32, random: Random) -> Self {
        assert!((1..=scale.warehouses).contains(&home), "there is no warehouse {home}");
        Wishes { scale, home, random }
    }

    /// The next transaction.
    pub fn next_wish(&mut self) -> Transaction {
        let (warehouse, district) = (self.home, self.random.between(1, DISTRICTS.into()) as u32);
        match Kind::draw(&mut self.random) {
            Kind::NewOrder => self.new_order(warehouse, district),
            Kind::Payment => self.payment(warehouse, district),
            Kind::OrderStatus => Transaction::OrderStatus { warehouse, district, customer: self.customer() },
            Kind::Delivery => Transaction::Delivery { warehouse, carrier: self.random.between(1, 10) as u32 },
            Kind::StockLevel => {
                let threshold = self.random.between(10, 20) as u32;
                Transaction::StockLevel { warehouse, district, threshold }
            }
        }
    }

    /// Seconds of thinking: exponential, at most ten times the mean.
    pub fn think_s(&mut self, mean: f64) -> f64 {
        (-self.random.fraction().max(1e-9).ln()).min(10.0) * mean
    }

    fn new_order(&mut self, warehouse: u32, district: u32) -> Transaction {
        let customer = uneven(&mut self.random, Uneven::Customer, 1, self.scale.customers);
        let count = self.random.between(5, 15);
        let mut lines: Vec<Line> = (0..count).map(|_| self.line()).collect();
        // All users lock stock in one order, or they would deadlock.
        lines.sort_unstable();
        if self.random.percent(1)
            && let Some(last) = lines.last_mut()
        {
            last.item = self.scale.items + 1; // which nobody has: the order will be rolled back
        }
        Transaction::NewOrder { warehouse, district, customer, lines }
    }

    fn line(&mut self) -> Line {
        let is_remote = self.random.percent(1);
        Line {
            supply_warehouse: if is_remote { self.another_warehouse() } else { self.home },
            item: uneven(&mut self.random, Uneven::Item, 1, self.scale.items),
            quantity: self.random.between(1, 10) as u32,
        }
    }

    fn payment(&mut self, warehouse: u32, district: u32) -> Transaction {
        let of = if self.random.percent(85) {
            (warehouse, district)
        } else {
            (self.another_warehouse(), self.random.between(1, DISTRICTS.into()) as u32)
        };
        let cents = self.random.between(100, 500_000) as u32;
        Transaction::Payment { warehouse, district, of, customer: self.customer(), cents }
    }

    fn customer(&mut self) -> Customer {
        if self.random.percent(60) {
            let last = self.scale.last_names() - 1;
            Customer::LastName(last_name(uneven(&mut self.random, Uneven::NameAsked, 0, last)))
        } else {
            Customer::Number(uneven(&mut self.random, Uneven::Customer, 1, self.scale.customers))
        }
    }

    /// Another one than home, if there is one.
    fn another_warehouse(&mut self) -> u32 {
        if self.scale.warehouses == 1 {
            return self.home;
        }
        let other = self.random.between(1, u64::from(self.scale.warehouses) - 1) as u32;
        if other >= self.home { other + 1 } else { other }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wishes(warehouses: u32) -> Vec<Transaction> {
        let mut wishes = Wishes::new(Scale::of(warehouses), 2.min(warehouses), Random::new(1, 1));
        (0..23_000).map(|_| wishes.next_wish()).collect()
    }

    #[test]
    fn the_mix_is_ten_ten_one_one_one() {
        let all = wishes(3);
        for kind in Kind::ALL {
            let (wanted, is) = (kind.weight() * 1000, all.iter().filter(|t| t.kind() == kind).count() as u64);
            assert!(is.abs_diff(wanted) < wanted / 8, "{kind:?}: {is} of {wanted}");
        }
    }

    #[test]
    fn one_new_order_in_a_hundred_asks_for_what_is_not_there() {
        let all = wishes(3);
        let orders = all.iter().filter_map(|t| match t {
            Transaction::NewOrder { lines, .. } => Some(lines),
            _ => None,
        });
        let (mut unused, mut count) = (0, 0);
        for lines in orders {
            assert!((5..=15).contains(&lines.len()) && lines.is_sorted_by_key(|l| l.supply_warehouse));
            unused += lines.iter().filter(|line| line.item > 100_000).count();
            count += 1;
        }
        assert!((count / 200..count / 50).contains(&unused), "{unused} of {count}");
    }

    #[test]
    fn other_warehouses_are_others() {
        for transaction in wishes(3) {
            if let Transaction::Payment { warehouse, district, of, .. } = transaction {
                assert!(of == (warehouse, district) || of.0 != warehouse && (1..=3).contains(&of.0));
            }
        }
        let alone = wishes(1);
        assert!(alone.iter().all(|t| !matches!(t, Transaction::Payment { of, .. } if of.0 != 1)));
    }
}
