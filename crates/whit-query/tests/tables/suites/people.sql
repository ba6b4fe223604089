-- What people ask of a census and of telemetry: the shapes of statement that a suite for private SQL tries, over tables whose names have capital letters. The statements are ours.

-- 1: how many rows
SELECT COUNT(*) AS n FROM census;

-- 2: how many people, by their key
SELECT COUNT(DISTINCT PersonID) AS people FROM census;

-- 3: a sum
SELECT SUM(Income) AS total FROM census;

-- 4: a mean
SELECT AVG(Age) AS age FROM census;

-- 5: several aggregates at once
SELECT COUNT(*) AS n, AVG(Income) AS income, AVG(Age) AS age FROM census;

-- 6: variance and deviation
SELECT VAR_POP(Educ) AS variance, STDDEV_POP(Educ) AS deviation FROM census;

-- 7: by one key
SELECT Sex, COUNT(*) AS n FROM census GROUP BY Sex ORDER BY Sex;

-- 8: by two keys
SELECT Sex, Married, AVG(Income) AS income FROM census GROUP BY Sex, Married ORDER BY Sex, Married;

-- 9: in other letters
SELECT SEX, count(*) AS N FROM CENSUS GROUP BY sex ORDER BY sEx;

-- 10: names in quotes
SELECT "Race", SUM("Income") AS "Total Income" FROM census GROUP BY "Race" ORDER BY "Race";

-- 11: a condition
SELECT COUNT(*) AS n FROM census WHERE Age BETWEEN 30 AND 50 AND Married;

-- 12: a list
SELECT COUNT(*) AS n FROM census WHERE Educ IN (9, 10, 11);

-- 13: arithmetic on what is released
SELECT SUM(Income) / COUNT(*) AS each_one FROM census;

-- 14: arithmetic on columns
SELECT AVG(Income / 1000.0) AS thousands FROM census;

-- 15: a case
SELECT SUM(CASE WHEN Age < 18 THEN 1 ELSE 0 END) AS young FROM census;

-- 16: groups that are computed
SELECT CASE WHEN Age < 40 THEN 'young' ELSE 'old' END AS kind, COUNT(*) AS n
FROM census GROUP BY CASE WHEN Age < 40 THEN 'young' ELSE 'old' END ORDER BY kind;

-- 17: groups that are released and large
SELECT Race, COUNT(*) AS n FROM census GROUP BY Race HAVING COUNT(*) > 300 ORDER BY Race;

-- 18: the largest group
SELECT Race, COUNT(*) AS n FROM census GROUP BY Race ORDER BY n DESC LIMIT 1;

-- 19: a sub-query that chooses columns
SELECT AVG(a) AS age FROM (SELECT Age AS a, Married AS m FROM census) AS few WHERE m;

-- 20: a common table expression
WITH rich AS (SELECT * FROM census WHERE Income > 50000) SELECT Sex, COUNT(*) AS n FROM rich GROUP BY Sex ORDER BY Sex;

-- 21: totals of groups
SELECT SUM(n) AS n FROM (SELECT Educ, COUNT(*) AS n FROM census GROUP BY Educ) AS groups;

-- 22: rounded
SELECT Sex, ROUND(AVG(Age), 0) AS age FROM census GROUP BY Sex ORDER BY Sex;

-- 23: a median
SELECT MEDIAN(Age) AS age FROM census;

-- 24: events
SELECT COUNT(*) AS reports, SUM(Crashes) AS crashes FROM telemetry;

-- 25: devices, each of which reports many times
SELECT COUNT(DISTINCT DeviceID) AS devices FROM telemetry;

-- 26: a name with a space
SELECT OsName, AVG("Session Minutes") AS minutes FROM telemetry GROUP BY OsName ORDER BY OsName;

-- 27: by day
SELECT EventDate, COUNT(*) AS n FROM telemetry WHERE EventDate >= DATE '2026-03-02' GROUP BY EventDate ORDER BY EventDate;

-- 28: by what a function makes of a column
SELECT EXTRACT(MONTH FROM EventDate) AS month, SUM(Crashes) AS crashes FROM telemetry
GROUP BY EXTRACT(MONTH FROM EventDate) ORDER BY month;

-- 29: what each device does, and then all of them
SELECT AVG(crashed) AS crashes_of_a_device
FROM (SELECT DeviceID, SUM(Crashes) AS crashed FROM telemetry GROUP BY DeviceID) AS devices WHERE crashed BETWEEN 0 AND 60;

-- 30: with a public table
SELECT Region, COUNT(*) AS n FROM census JOIN regions ON census.Race = regions.Race GROUP BY Region ORDER BY Region;

-- 31: conditions on text
SELECT COUNT(*) AS n FROM telemetry WHERE OsName LIKE 'W%' AND NOT IsBeta AND BatteryLevel > 0.25;
