ALTER TABLE customer ADD INDEX customer_name (c_w_id, c_d_id, c_last, c_first);
ALTER TABLE orders ADD INDEX orders_customer (o_w_id, o_d_id, o_c_id, o_id);
