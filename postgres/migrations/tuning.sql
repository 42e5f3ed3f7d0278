-- What PostgreSQL itself does better with. Other engines may refuse any of these;
-- nothing depends on them. A row of semel_operation is written three times in its
-- life; with most of each page kept free at first, that happens in place. Tables with a high
-- turnover are cleaned early.
ALTER TABLE semel_operation SET (fillfactor = 40, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE semel_work SET (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
