-- every statement
set x = "a\n${y}" where type="defaultParam"; set `b.c` = '''raw''';
load csv.`/data/people*.csv` where header="true" and delimiter="," as t;
/* a query */ with a as (select "q""d", 'it''s;' from `my t`) select * from a as u;
train t as LogisticRegression.`/tmp/m` where `fitParam.0.epochs`=5 and fitParam.0.l2=-1.5e-3 as r;
predict t as FM.`/tmp/m` as p;
save overwrite p as csv.`/tmp/out`; save append p as json.`/tmp/out.json`; save ignore p as csv.`o`;
include file.`other.sql`; drop table t; !show tables; !kill job-1;
