/* What journal.db holds. Changing it raises JOURNAL_VERSION. */
#ifndef JOURNAL_SCHEMA_H
#define JOURNAL_SCHEMA_H

enum {
    JOURNAL_APPLICATION = 0x52554e47, /* "RUNG" */
    JOURNAL_VERSION = 1,
};

static const char journal_schema[] =
    "CREATE TABLE records ("
    " seq INTEGER PRIMARY KEY AUTOINCREMENT,"
    " wall_ms INTEGER NOT NULL,"
    " type TEXT NOT NULL,"
    " key TEXT NOT NULL,"
    " json TEXT NOT NULL,"
    " UNIQUE (type, key));"
    "CREATE VIEW variants AS SELECT seq, key, json_extract(json, '$.verdict') AS verdict,"
    " json_extract(json, '$.code') AS code, json_extract(json, '$.time_ns') AS time_ns"
    " FROM records WHERE type = 'variant';"
    "CREATE VIEW ideas AS SELECT seq, key, json_extract(json, '$.category') AS category,"
    " json_extract(json, '$.sentence') AS sentence FROM records WHERE type = 'idea';";

#endif
