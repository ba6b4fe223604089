-- The least that one could write by hand for a private answer to each question of crates/whit-query/tests/tables/suites/orders.sql, without the noise: what one customer has in one
-- group, bounded, and then summed over customers. How many groups a customer may have is not bounded. The number says which question it is.

-- 1: lines by status
SELECT l_returnflag, l_linestatus, SUM(LEAST(quantity, 10000)), SUM(LEAST(revenue, 22000000)), SUM(LEAST(charged, 23760000)), SUM(LEAST(discount, 20)), SUM(LEAST(lines, 200))
FROM (
    SELECT o_custkey, l_returnflag, l_linestatus, SUM(l_quantity) AS quantity, SUM(l_extendedprice * (1 - l_discount)) AS revenue,
           SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charged, SUM(l_discount) AS discount, COUNT(*) AS lines
    FROM lineitem JOIN orders ON o_orderkey = l_orderkey
    WHERE l_shipdate <= DATE '1998-12-01' - INTERVAL '90' DAY
    GROUP BY o_custkey, l_returnflag, l_linestatus
)
GROUP BY l_returnflag, l_linestatus;

-- 4: orders with a late line, by priority
SELECT o_orderpriority, SUM(LEAST(late, 50))
FROM (
    SELECT o_custkey, o_orderpriority, COUNT(*) AS late
    FROM orders
    WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-07-01' + INTERVAL '3' MONTH
      AND EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
    GROUP BY o_custkey, o_orderpriority
)
GROUP BY o_orderpriority;

-- 5: revenue from suppliers of the customer's own nation
SELECT n_name, SUM(LEAST(revenue, 22000000))
FROM (
    SELECT c_custkey, n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
    FROM customer, orders, lineitem, supplier, nation, region
    WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
      AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
      AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
    GROUP BY c_custkey, n_name
)
GROUP BY n_name;

-- 6: what small discounts cost in a year
SELECT SUM(LEAST(given, 2200000))
FROM (
    SELECT o_custkey, SUM(l_extendedprice * l_discount) AS given
    FROM lineitem JOIN orders ON o_orderkey = l_orderkey
    WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL '1' YEAR
      AND l_discount BETWEEN 0.045 AND 0.075 AND l_quantity < 24
    GROUP BY o_custkey
);

-- 7: trade between two nations, by year
SELECT seller, buyer, year, SUM(LEAST(volume, 22000000))
FROM (
    SELECT c_custkey, n1.n_name AS seller, n2.n_name AS buyer, EXTRACT(YEAR FROM l_shipdate) AS year,
           SUM(l_extendedprice * (1 - l_discount)) AS volume
    FROM supplier
    JOIN lineitem ON l_suppkey = s_suppkey
    JOIN orders ON o_orderkey = l_orderkey
    JOIN customer ON c_custkey = o_custkey
    JOIN nation n1 ON s_nationkey = n1.n_nationkey
    JOIN nation n2 ON c_nationkey = n2.n_nationkey
    WHERE ((n1.n_name = 'FRANCE' AND n2.n_name = 'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE'))
      AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
    GROUP BY c_custkey, seller, buyer, year
)
GROUP BY seller, buyer, year;

-- 8: the share of one nation in a market, by year
SELECT year, SUM(LEAST(own, 22000000)) / SUM(LEAST(volume, 22000000))
FROM (
    SELECT c_custkey, EXTRACT(YEAR FROM o_orderdate) AS year, SUM(l_extendedprice * (1 - l_discount)) AS volume,
           SUM(CASE WHEN n2.n_name = 'BRAZIL' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) AS own
    FROM part, supplier, lineitem, orders, customer, nation n1, nation n2, region
    WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey AND o_custkey = c_custkey
      AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey AND r_name = 'AMERICA'
      AND s_nationkey = n2.n_nationkey AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
      AND p_type LIKE 'ECONOMY%'
    GROUP BY c_custkey, year
)
GROUP BY year;

-- 9: profit on green parts, by nation and year
SELECT n_name, year, SUM(LEAST(profit, 22000000))
FROM (
    SELECT o_custkey, n_name, EXTRACT(YEAR FROM o_orderdate) AS year,
           SUM(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS profit
    FROM lineitem
    JOIN orders ON o_orderkey = l_orderkey
    JOIN part ON p_partkey = l_partkey
    JOIN partsupp ON ps_partkey = l_partkey AND ps_suppkey = l_suppkey
    JOIN supplier ON s_suppkey = l_suppkey
    JOIN nation ON n_nationkey = s_nationkey
    WHERE p_name LIKE '%green%' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1996-01-01'
      AND n_name IN ('FRANCE', 'JAPAN', 'KENYA')
    GROUP BY o_custkey, n_name, year
)
GROUP BY n_name, year;

-- 12: late lines by ship mode and how urgent their orders were
SELECT l_shipmode, SUM(LEAST(urgent, 200)), SUM(LEAST(other, 200))
FROM (
    SELECT o_custkey, l_shipmode,
           SUM(CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS urgent,
           SUM(CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END) AS other
    FROM orders JOIN lineitem ON o_orderkey = l_orderkey
    WHERE l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
      AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
    GROUP BY o_custkey, l_shipmode
)
GROUP BY l_shipmode;

-- 13: how many customers have so many orders
SELECT orders_each, COUNT(*) AS customers
FROM (
    SELECT c_custkey, COUNT(o_orderkey) AS orders_each
    FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%'
    GROUP BY c_custkey
) AS each_customer
WHERE orders_each = 0 OR orders_each BETWEEN 6 AND 14
GROUP BY orders_each;

-- 14: the share of promotions in a month's revenue
SELECT 100.0 * SUM(LEAST(promotion, 22000000)) / SUM(LEAST(revenue, 22000000))
FROM (
    SELECT o_custkey, SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) AS promotion,
           SUM(l_extendedprice * (1 - l_discount)) AS revenue
    FROM lineitem, part, orders
    WHERE l_partkey = p_partkey AND o_orderkey = l_orderkey AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'
    GROUP BY o_custkey
);

-- 15: the revenue of each supplier in a quarter, the best three
SELECT s_suppkey, SUM(LEAST(revenue, 22000000)) AS revenue
FROM (
    SELECT o_custkey, s_suppkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue
    FROM lineitem JOIN supplier ON l_suppkey = s_suppkey JOIN orders ON o_orderkey = l_orderkey
    WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'
    GROUP BY o_custkey, s_suppkey
)
GROUP BY s_suppkey
ORDER BY revenue DESC
LIMIT 3;

-- 17: what small quantities of some parts bring in a year
SELECT SUM(LEAST(yearly, 22000000)) / 7.0
FROM (
    SELECT o_custkey, SUM(l_extendedprice) AS yearly
    FROM lineitem JOIN part ON p_partkey = l_partkey JOIN orders ON o_orderkey = l_orderkey
    WHERE p_brand IN ('Brand#23', 'Brand#31') AND l_quantity < 0.2 * 25.5
    GROUP BY o_custkey
);

-- 18: orders of great quantity, and what they cost
SELECT SUM(LEAST(orders, 50)), SUM(LEAST(price, 30000000))
FROM (
    SELECT o_custkey, COUNT(*) AS orders, SUM(o_totalprice) AS price
    FROM orders
    WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 250)
    GROUP BY o_custkey
);

-- 19: revenue of three kinds of parts and quantities
SELECT SUM(LEAST(revenue, 22000000))
FROM (
    SELECT o_custkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue
    FROM lineitem, part, orders
    WHERE p_partkey = l_partkey AND o_orderkey = l_orderkey AND l_shipinstruct = 'DELIVER IN PERSON' AND l_shipmode IN ('AIR', 'REG AIR')
      AND ((p_brand = 'Brand#12' AND l_quantity BETWEEN 1 AND 21 AND p_size BETWEEN 1 AND 15)
        OR (p_brand = 'Brand#23' AND l_quantity BETWEEN 10 AND 30 AND p_size BETWEEN 1 AND 20)
        OR (p_brand = 'Brand#34' AND l_quantity BETWEEN 20 AND 40 AND p_size BETWEEN 1 AND 25))
    GROUP BY o_custkey
);

-- 21: lines for which an order had to wait while others were in time, by the supplier's nation
SELECT n_name, SUM(LEAST(waiting, 200))
FROM (
    SELECT o_custkey, n_name, COUNT(*) AS waiting
    FROM supplier, lineitem l1, orders, nation
    WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
      AND l1.l_receiptdate > l1.l_commitdate AND s_nationkey = n_nationkey
      AND EXISTS (SELECT 1 FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
      AND NOT EXISTS (SELECT 1 FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> l1.l_suppkey
                      AND l3.l_receiptdate > l3.l_commitdate)
    GROUP BY o_custkey, n_name
)
GROUP BY n_name;

-- 22: customers with money who ordered nothing, by the country of their telephone
SELECT country, COUNT(*), SUM(LEAST(balance, 10000))
FROM (
    SELECT c_custkey, SUBSTRING(c_phone FROM 1 FOR 2) AS country, SUM(c_acctbal) AS balance
    FROM customer
    WHERE SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23', '29', '30', '18', '17') AND c_acctbal > 4500
      AND NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)
    GROUP BY c_custkey, country
)
GROUP BY country;
