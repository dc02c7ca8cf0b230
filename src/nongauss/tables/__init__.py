"""Host side, no JAX: any table to columns to rows. A table has one way in.

    from nongauss.tables.learn import as_source, learn
    from nongauss.tables.source import Encode, sample
    from nongauss.tables.target import scaled_target, target_of

    source = as_source(X, y, sample_weight, estimator_name=name)           # memory, Parquet or Dask: parts
    learned = learn(source, name, partial(target_of, name))                # one pass over the table
    scaler = learned.target.scaler()
    rows = source.map(Encode(learned.encoder, partial(scaled_target, scaler, name), name))
    first = sample(rows, MOST)       # canonical rows X, Y, weight; of a table in memory all of them
    if first.is_all: ...             # learn from `first.rows`; else also from `rows`, wherever they are

**Way in.** `as_source(X, y, weight, **beside)` gives a `Source` of `Part`s. A table in memory is one part,
its weights checked, its columns decoded once and kept on the part (`InputTable`). Columns beside it, such as
`exposure=`, are in `part.beside`. Targets are read by functions of `(part, weight)`: `target_of` and
`scaled_target` for numbers, `labels_of` and `class_target` for classes, or your own.

**Learning.** `learn(source, name, of_target)` gives `.encoder`, `.target` (the sum of `of_target`),
`.counted`, `.gaps`, `.extremes`, and `.columns`: for each flat column what all rows tell (`numbers` or
`levels`). A SciPy matrix (`as_source(X, accept_sparse=True)`) is learned without making a column dense.

**Views.** An input column becomes one flat column of numbers or labels, or several (a date: its days and its
weekday); `encoder.columns` are the flat ones, each a `ColumnCode` with `place`, the input column that it is
of. Models see flat columns and no kinds. `encoder.n_features` counts input columns, `len(encoder.columns)`
flat ones.

| view | gives | names |
|---|---|---|
| `encoder.as_scaled(X)` | (N, D) standardised, labels 0/1, gaps filled, flagged | `encoder.encoded_names` |
| `encoder.as_one_hot(X)` | (N, D) numbers as they are, labels 0/1, gaps NaN | `encoder.one_hot_names` |
| `encoder.as_ranks(X)` | the same, an ordered category as whole numbers | `encoder.rank_names` |
| `encoder.raw(X, only=None)` | flat columns: `values`, or `codes` into `levels` | `code.name` |

`encoder.raw(X, only=places)` reads some flat columns of a table that may lack the others. `code.shown(value)`
is the text of a value or bound in the words of its kind, for rules, plots and reports.

**Samples.** `sample(rows, most)` of encoded rows; `sample_table(source, encode, most)` of the rows as they
came (`.table`), in memory as well. `first.rows`, `first.is_all`, `first.checksum` (of all rows); of a table
in memory `first.places(part.weight)` is the canonical row of each original row, -1 for those of weight 0.

**Reports.** `table = read_input(frame)` is decoded once; `model.predict(table)`, `table.with_column(name,
cells)`, `table.take(rows)` and `table.select(names)` share what is decoded.

**Files.** column (and the contract of a kind), kinds/ (one file a kind; numbers and their scale), frame,
encoder (and `ColumnCode`), learn; source (parts, `Encode`, samples), parquet, dask_source; rows (canonical
order, weights); target, labels, sparse; files (CSV and Parquet, read and written).
"""
