//! The rows of each table, as they are at the beginning.

use std::ops::RangeInclusive;

use super::super::names::{Uneven, data, digits, last_name, text, uneven};
use super::super::{DISTRICTS, Scale};
use crate::random::{Random, Shuffled};

/// When everything was loaded: nothing depends on it.
const WHEN: &str = "2020-01-01 00:00:00";

/// A table, with the columns that are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// What is sold.
    Item,
    /// Where it lies.
    Warehouse,
    /// How much of it, in a warehouse.
    Stock,
    /// A part of a warehouse's customers.
    District,
    /// The buyers.
    Customer,
    /// Payments.
    History,
    /// Orders.
    Orders,
    /// Their lines.
    OrderLine,
    /// Orders that are not delivered.
    NewOrder,
}

impl Table {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Item,
        Self::Warehouse,
        Self::Stock,
        Self::District,
        Self::Customer,
        Self::History,
        Self::Orders,
        Self::OrderLine,
        Self::NewOrder,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let columns = self.columns();
        columns.split_once(' ').map_or(columns, |(name, _)| name)
    }

    /// Name and columns.
    pub fn columns(self) -> &'static str {
        match self {
            Table::Item => "item (i_id, i_im_id, i_name, i_price, i_data)",
            Table::Warehouse => {
                "warehouse (w_id, w_name, w_street_1, w_street_2, w_city, w_state, w_zip, w_tax, w_ytd)"
            }
            Table::Stock => {
                "stock (s_w_id, s_i_id, s_quantity, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
                 s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10, s_ytd, s_order_cnt, s_remote_cnt, s_data)"
            }
            Table::District => {
                "district (d_w_id, d_id, d_name, d_street_1, d_street_2, d_city, d_state, d_zip, d_tax, d_ytd, \
                 d_next_o_id)"
            }
            Table::Customer => {
                "customer (c_w_id, c_d_id, c_id, c_first, c_middle, c_last, c_street_1, c_street_2, c_city, \
                 c_state, c_zip, c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance, c_ytd_payment, \
                 c_payment_cnt, c_delivery_cnt, c_data)"
            }
            Table::History => {
                "history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data)"
            }
            Table::Orders => {
                "orders (o_w_id, o_d_id, o_id, o_c_id, o_entry_d, o_carrier_id, o_ol_cnt, o_all_local)"
            }
            Table::OrderLine => {
                "order_line (ol_w_id, ol_d_id, ol_o_id, ol_number, ol_i_id, ol_supply_w_id, ol_delivery_d, \
                 ol_quantity, ol_amount, ol_dist_info)"
            }
            Table::NewOrder => "new_order (no_w_id, no_d_id, no_o_id)",
        }
    }
}

/// A column's value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A whole number.
    Number(u64),
    /// Hundredths: money and taxes.
    Hundredths(i64),
    /// Ten-thousandths: taxes and discounts.
    TenThousandths(u64),
    /// Letters, digits, blanks, dashes and colons: nothing to escape.
    Text(String),
    /// NULL.
    Null,
}

impl Value {
    /// As SQL and COPY write it, but for the quotes of a text; `None` is NULL.
    pub fn plain(&self) -> Option<String> {
        Some(match self {
            Value::Number(number) => number.to_string(),
            Value::Hundredths(number) => {
                let sign = if *number < 0 { "-" } else { "" };
                format!("{sign}{}.{:02}", number.abs() / 100, number.abs() % 100)
            }
            Value::TenThousandths(number) => format!("{}.{:04}", number / 10_000, number % 10_000),
            Value::Text(text) => text.clone(),
            Value::Null => return None,
        })
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Number(number.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

/// Rows of one table.
pub struct Rows {
    /// Which.
    pub table: Table,
    /// Its rows.
    pub rows: Vec<Vec<Value>>,
}

macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$(Value::from($value)),*] };
}

/// Some items.
pub fn items(random: &mut Random, items: RangeInclusive<u32>) -> Rows {
    let row = |item: u32| {
        let image = random.between(1, 10_000) as u32;
        let (name, cents) = (text(random, 14, 24), random.between(100, 10_000) as i64);
        row![item, image, name, Value::Hundredths(cents), data(random)]
    };
    Rows { table: Table::Item, rows: items.map(row).collect() }
}

/// A warehouse's own row.
pub fn warehouse(random: &mut Random, warehouse: u32, scale: Scale) -> Rows {
    let mut row = row![warehouse, text(random, 6, 10)];
    row.extend(address(random));
    let ytd = i64::from(DISTRICTS * scale.customers) * 1000;
    row.extend([Value::TenThousandths(random.between(0, 2000)), Value::Hundredths(ytd)]);
    Rows { table: Table::Warehouse, rows: vec![row] }
}

/// What a warehouse has of some items.
pub fn stock(random: &mut Random, warehouse: u32, items: RangeInclusive<u32>) -> Rows {
    let row = |item: u32| {
        let mut row = row![warehouse, item, random.between(10, 100) as u32];
        row.extend((0..DISTRICTS).map(|_| Value::from(text(random, 24, 24))));
        row.extend(row![0, 0, 0, data(random)]);
        row
    };
    Rows { table: Table::Stock, rows: items.map(row).collect() }
}

/// A district's own row.
pub fn district(random: &mut Random, (warehouse, district): (u32, u32), scale: Scale) -> Rows {
    let mut row = row![warehouse, district, text(random, 6, 10)];
    row.extend(address(random));
    let ytd = i64::from(scale.customers) * 1000;
    row.extend([Value::TenThousandths(random.between(0, 2000)), Value::Hundredths(ytd)]);
    row.push(Value::from(scale.customers + 1));
    Rows { table: Table::District, rows: vec![row] }
}

/// Some customers of a district, and the payment that each has made.
pub fn customers(
    random: &mut Random,
    (warehouse, district): (u32, u32),
    customers: RangeInclusive<u32>,
) -> [Rows; 2] {
    let (mut made, mut history) = (Vec::new(), Vec::new());
    for customer in customers {
        let name = if customer <= 1000 { customer - 1 } else { uneven(random, Uneven::NameLoaded, 0, 999) };
        let mut row = row![warehouse, district, customer, text(random, 8, 16), "OE", last_name(name)];
        row.extend(address(random));
        let credit = if random.percent(10) { "BC" } else { "GC" };
        row.extend(row![digits(random, 16), WHEN, credit, Value::Hundredths(5_000_000)]);
        row.extend([Value::TenThousandths(random.between(0, 5000)), Value::Hundredths(-1000)]);
        row.extend(row![Value::Hundredths(1000), 1, 0, text(random, 300, 500)]);
        made.push(row);
        let (amount, data) = (Value::Hundredths(1000), text(random, 12, 24));
        history.push(row![customer, district, warehouse, district, warehouse, WHEN, amount, data]);
    }
    [Rows { table: Table::Customer, rows: made }, Rows { table: Table::History, rows: history }]
}

/// Some orders of a district with their lines; the last of a district's are not delivered.
pub fn orders(
    random: &mut Random,
    (warehouse, district): (u32, u32),
    orders: RangeInclusive<u32>,
    owners: &Shuffled,
    scale: Scale,
) -> [Rows; 3] {
    let (mut made, mut lines, mut open) = (Vec::new(), Vec::new(), Vec::new());
    for order in orders {
        let is_open = order >= scale.first_open_order();
        let (customer, count) = (owners.at(u64::from(order) - 1) as u32 + 1, random.between(5, 15) as u32);
        let carrier = if is_open { Value::Null } else { Value::from(random.between(1, 10) as u32) };
        made.push(row![warehouse, district, order, customer, WHEN, carrier, count, 1]);
        for number in 1..=count {
            let item = random.between(1, scale.items.into()) as u32;
            let delivered = if is_open { Value::Null } else { Value::from(WHEN) };
            let cents = if is_open { random.between(1, 999_999) as i64 } else { 0 };
            lines.push(row![
                warehouse,
                district,
                order,
                number,
                item,
                warehouse,
                delivered,
                5,
                Value::Hundredths(cents),
                text(random, 24, 24),
            ]);
        }
        if is_open {
            open.push(row![warehouse, district, order]);
        }
    }
    [
        Rows { table: Table::Orders, rows: made },
        Rows { table: Table::OrderLine, rows: lines },
        Rows { table: Table::NewOrder, rows: open },
    ]
}

/// Two streets, city, state, zip.
fn address(random: &mut Random) -> [Value; 5] {
    let [street_1, street_2, city] = std::array::from_fn(|_| Value::from(text(random, 10, 20)));
    let zip = Value::from(format!("{}11111", digits(random, 4)));
    [street_1, street_2, city, Value::from(text(random, 2, 2)), zip]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_value_for_each_column() {
        let (mut random, scale) = (Random::new(1, 1), Scale { warehouses: 1, items: 100, customers: 30 });
        let mut all = vec![
            items(&mut random, 1..=3),
            warehouse(&mut random, 1, scale),
            stock(&mut random, 1, 1..=3),
            district(&mut random, (1, 1), scale),
        ];
        all.extend(customers(&mut random, (1, 1), 1..=30));
        all.extend(orders(&mut random, (1, 1), 1..=30, &Shuffled::new(30, 1), scale));
        for Rows { table, rows } in &all {
            let columns = table.columns().split(',').count();
            assert!(!rows.is_empty() && rows.iter().all(|row| row.len() == columns), "{table:?}");
        }
        assert_eq!(all.last().map(|open| open.rows.len()), Some(9), "three orders of ten are open");
    }

    #[test]
    fn money_is_written_with_its_sign() {
        assert_eq!(Value::Hundredths(-1005).plain().as_deref(), Some("-10.05"));
        assert_eq!(Value::TenThousandths(12).plain().as_deref(), Some("0.0012"));
        assert_eq!(Value::Null.plain(), None);
    }
}
