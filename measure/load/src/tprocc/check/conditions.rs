//! The consistency conditions in SQL that both databases understand. Each part counts what breaks it.

pub struct Condition {
    pub number: u32,
    pub says: &'static str,
    pub parts: &'static [&'static str],
}

pub const CONDITIONS: &[Condition] = &[
    Condition {
        number: 1,
        says: "a warehouse's year-to-date is the sum of its districts'",
        parts: &["SELECT count(*) FROM warehouse WHERE w_ytd <>
            (SELECT coalesce(sum(d_ytd), 0) FROM district WHERE d_w_id = w_id)"],
    },
    Condition {
        number: 2,
        says: "a district's next order number follows its last order, and its last open one",
        parts: &[
            "SELECT count(*) FROM district WHERE d_next_o_id - 1 <>
                (SELECT coalesce(max(o_id), 0) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id)",
            "SELECT count(*) FROM district WHERE d_next_o_id - 1 <>
                (SELECT max(no_o_id) FROM new_order WHERE no_w_id = d_w_id AND no_d_id = d_id)",
        ],
    },
    Condition {
        number: 3,
        says: "a district's open orders have no gaps",
        parts: &["SELECT count(*) FROM (SELECT no_w_id FROM new_order GROUP BY no_w_id, no_d_id
            HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)) AS gaps"],
    },
    Condition {
        number: 4,
        says: "a district has as many order lines as its orders say",
        parts: &["SELECT count(*) FROM district
            LEFT JOIN (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS said FROM orders GROUP BY o_w_id, o_d_id) AS o
                ON o_w_id = d_w_id AND o_d_id = d_id
            LEFT JOIN (SELECT ol_w_id, ol_d_id, count(*) AS are FROM order_line GROUP BY ol_w_id, ol_d_id) AS l
                ON ol_w_id = d_w_id AND ol_d_id = d_id
            WHERE coalesce(said, 0) <> coalesce(are, 0)"],
    },
    Condition {
        number: 5,
        says: "an order has no carrier if, and only if, it is open",
        parts: &[
            "SELECT count(*) FROM orders
                LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
                WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
            "SELECT count(*) FROM new_order
                LEFT JOIN orders ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id WHERE o_id IS NULL",
        ],
    },
    Condition {
        number: 6,
        says: "an order has as many lines as it says",
        parts: &[
            "SELECT count(*) FROM orders LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS are
                FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_ol_cnt <> coalesce(are, 0)",
            "SELECT count(*) FROM order_line LEFT JOIN orders
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE o_id IS NULL",
        ],
    },
    Condition {
        number: 7,
        says: "an order's lines have no delivery date if, and only if, it has no carrier",
        parts: &["SELECT count(*) FROM order_line JOIN orders
            ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
            WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)"],
    },
    Condition {
        number: 8,
        says: "a warehouse's year-to-date is the sum of its payments",
        parts: &["SELECT count(*) FROM warehouse
            LEFT JOIN (SELECT h_w_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id) AS h ON h_w_id = w_id
            WHERE w_ytd <> coalesce(paid, 0)"],
    },
    Condition {
        number: 9,
        says: "a district's year-to-date is the sum of its payments",
        parts: &["SELECT count(*) FROM district
            LEFT JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS paid FROM history GROUP BY h_w_id, h_d_id) AS h
            ON h_w_id = d_w_id AND h_d_id = d_id WHERE d_ytd <> coalesce(paid, 0)"],
    },
    Condition {
        number: 10,
        says: "a customer's balance is what was delivered less what was paid",
        parts: &["SELECT count(*) FROM customer
            LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS got FROM orders JOIN order_line
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL
                GROUP BY o_w_id, o_d_id, o_c_id) AS o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
            LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS paid FROM history
                GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h
                ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
            WHERE c_balance <> coalesce(got, 0) - coalesce(paid, 0)"],
    },
    Condition {
        number: 12,
        says: "a customer's balance and payments together are what was delivered",
        parts: &["SELECT count(*) FROM customer
            LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(ol_amount) AS got FROM orders JOIN order_line
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL
                GROUP BY o_w_id, o_d_id, o_c_id) AS o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
            WHERE c_balance + c_ytd_payment <> coalesce(got, 0)"],
    },
];
