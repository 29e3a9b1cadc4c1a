#include "journal/journal.h"
#include "base/die.h"
#include "base/io.h"
#include "base/json.h"
#include "base/status.h"
#include "journal/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

struct rung_journal {
    pthread_mutex_t lock;
    sqlite3 *db;
    sqlite3_stmt *insert, *find, *count;
    char *dir;
    int lock_fd; /* -1 for readers */
};

enum { BUSY_MS = 10000 };

static int32_t db_fail(struct rung_journal *j, struct rung_error *err, const char *what)
{
    int code = sqlite3_extended_errcode(j->db);
    const char *hint = (code & 0xff) == SQLITE_FULL ? "; free some space and resume"
                       : (code & 0xff) == SQLITE_CORRUPT || (code & 0xff) == SQLITE_NOTADB
                           ? "; the file is damaged or no journal"
                           : "";
    return rung_fail(err, RUNG_EIO, "journal.sqlite", "%s/journal.db: %s: %s%s", j->dir, what,
                     sqlite3_errmsg(j->db), hint);
}

static int32_t exec(struct rung_journal *j, const char *sql, const char *what,
                    struct rung_error *err)
{
    if (sqlite3_exec(j->db, sql, NULL, NULL, NULL) != SQLITE_OK)
        return db_fail(j, err, what);
    return RUNG_OK;
}

/* One integer of a pragma; -1 when it can't be read. */
static int64_t pragma(struct rung_journal *j, const char *sql)
{
    sqlite3_stmt *stmt = NULL;
    int64_t v = -1;
    if (sqlite3_prepare_v2(j->db, sql, -1, &stmt, NULL) == SQLITE_OK &&
        sqlite3_step(stmt) == SQLITE_ROW)
        v = sqlite3_column_int64(stmt, 0);
    sqlite3_finalize(stmt);
    return v;
}

/* WAL needs shared memory between processes, which network and fuse file systems do not give. */
static bool wal_is_safe(const char *dir)
{
    static const long unsafe[] = {NFS_SUPER_MAGIC,
                                  SMB_SUPER_MAGIC,
                                  V9FS_MAGIC,
                                  FUSE_SUPER_MAGIC,
                                  AFS_SUPER_MAGIC,
                                  0x0BD00BD0 /* Lustre */,
                                  0x47504653 /* GPFS */,
                                  0x19830326 /* BeeGFS */,
                                  0x00C36400 /* Ceph */,
                                  0xFF534D42 /* CIFS */,
                                  0xFE534D42 /* SMB2 */};
    struct statfs fs;
    if (statfs(dir, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
        if ((unsigned)fs.f_type == (unsigned)unsafe[i])
            return false;
    return true;
}

static int32_t take_lock(struct rung_journal *j, struct rung_error *err)
{
    char path[4200];
    snprintf(path, sizeof path, "%s/journal.lock", j->dir);
    j->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (j->lock_fd < 0)
        return rung_fail(err, RUNG_EIO, "journal.lock", "%s: %s", path, strerror(errno));
    if (flock(j->lock_fd, LOCK_EX | LOCK_NB) != 0)
        return rung_fail(err, RUNG_EUNAVAILABLE, "journal.in_use",
                         "%s: another process is writing this run; wait for it or stop it", j->dir);
    return RUNG_OK;
}

static int32_t create_schema(struct rung_journal *j, struct rung_error *err)
{
    char sql[sizeof journal_schema + 200];
    snprintf(sql, sizeof sql,
             "BEGIN IMMEDIATE; %s PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;",
             journal_schema, JOURNAL_APPLICATION, JOURNAL_VERSION);
    return exec(j, sql, "can't be made", err);
}

static int32_t check_version(struct rung_journal *j, struct rung_error *err)
{
    int64_t app = pragma(j, "PRAGMA application_id"), version = pragma(j, "PRAGMA user_version");
    if (app < 0)
        return db_fail(j, err, "can't be read");
    if (app != JOURNAL_APPLICATION)
        return rung_fail(err, RUNG_EINVAL, "journal.foreign",
                         "%s/journal.db: is no journal of rung", j->dir);
    if (version > JOURNAL_VERSION)
        return rung_fail(
            err, RUNG_EUNSUPPORTED, "journal.newer",
            "%s/journal.db: was written by a newer rung (journal version %lld, this one "
            "knows %d); use that rung",
            j->dir, (long long)version, JOURNAL_VERSION);
    return RUNG_OK;
}

static int32_t prepare(struct rung_journal *j, struct rung_error *err)
{
    static const char insert[] =
        "INSERT INTO records (wall_ms, type, key, json) VALUES (?, ?, ?, ?)";
    static const char find[] = "SELECT seq, json FROM records WHERE type = ? AND key = ?";
    static const char count[] = "SELECT count(*) FROM records WHERE type = ?";
    if (sqlite3_prepare_v2(j->db, insert, -1, &j->insert, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(j->db, find, -1, &j->find, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(j->db, count, -1, &j->count, NULL) != SQLITE_OK)
        return db_fail(j, err, "can't be read");
    return RUNG_OK;
}

static int32_t open_path(struct rung_journal *j, const char *path, int flags,
                         struct rung_error *err)
{
    if (sqlite3_open_v2(path, &j->db, flags, NULL) != SQLITE_OK)
        return db_fail(j, err, "can't be opened");
    sqlite3_busy_timeout(j->db, BUSY_MS);
    return RUNG_OK;
}

/* Made under another name and renamed: a journal.db that is there has its tables. */
static int32_t create_db(struct rung_journal *j, const char *path, struct rung_error *err)
{
    char fresh[4300];
    snprintf(fresh, sizeof fresh, "%s.new", path);
    unlink(fresh);
    int32_t status = open_path(j, fresh, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, err);
    if (!status)
        status = create_schema(j, err);
    int closed = sqlite3_close(j->db);
    j->db = NULL;
    if (!status && (closed != SQLITE_OK || rename(fresh, path) != 0))
        return rung_fail(err, RUNG_EIO, "journal.sqlite", "%s: can't be made: %s", path,
                         strerror(errno));
    return status;
}

/*
 * A folder that can't be written (an archive, somebody else's run) has no place for the shared
 * memory that readers of a WAL share. Without a log that waits there the file is all there is, and
 * nobody can change it.
 */
static int32_t open_unwritable(struct rung_journal *j, const char *path, struct rung_error *err)
{
    char uri[3 * 4200 + 40] = "file:", log[4300];
    struct stat st;
    size_t n = strlen(uri);
    snprintf(log, sizeof log, "%s-wal", path);
    if (stat(log, &st) == 0 && st.st_size > 0)
        return rung_fail(err, RUNG_EIO, "journal.read_only",
                         "%s: the run was cut, and what it wrote last can't be read in a folder "
                         "without the right to write; copy the folder first",
                         j->dir);
    for (const char *p = path; *p; p++)
        n += (size_t)snprintf(uri + n, sizeof uri - n, strchr("%?#", *p) ? "%%%02X" : "%c",
                              (unsigned char)*p);
    snprintf(uri + n, sizeof uri - n, "?immutable=1");
    return open_path(j, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, err);
}

static int32_t open_db(struct rung_journal *j, enum rung_journal_mode mode, struct rung_error *err)
{
    char path[4200];
    struct stat st;
    snprintf(path, sizeof path, "%s/journal.db", j->dir);
    bool exists = stat(path, &st) == 0;
    if (mode == RUNG_JOURNAL_CREATE && exists)
        return rung_fail(
            err, RUNG_EINVAL, "journal.exists",
            "%s: holds a run already; continue it with --resume %s, or choose another folder",
            j->dir, j->dir);
    if (mode != RUNG_JOURNAL_CREATE && !exists)
        return rung_fail(err, RUNG_ENOTFOUND, "journal.none", "%s: holds no run (no journal.db)",
                         j->dir);
    if (mode == RUNG_JOURNAL_READ && access(j->dir, W_OK) != 0)
        return open_unwritable(j, path, err);
    int32_t status = mode == RUNG_JOURNAL_CREATE ? create_db(j, path, err) : RUNG_OK;
    if (!status)
        status = open_path(j, path, SQLITE_OPEN_READWRITE, err);
    if (!status || mode != RUNG_JOURNAL_READ)
        return status;
    sqlite3_close(j->db); /* a reader may lack the right to write */
    return open_path(j, path, SQLITE_OPEN_READONLY, err);
}

static int32_t set_up(struct rung_journal *j, enum rung_journal_mode mode, struct rung_error *err)
{
    int32_t status = mode == RUNG_JOURNAL_READ ? RUNG_OK : take_lock(j, err);
    if (!status)
        status = open_db(j, mode, err);
    /* With WAL, NORMAL is enough for a killed process to lose nothing. */
    if (!status && mode != RUNG_JOURNAL_READ)
        status =
            exec(j,
                 wal_is_safe(j->dir) ? "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"
                                     : "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL",
                 "can't be written", err);
    if (!status)
        status = check_version(j, err);
    return status ? status : prepare(j, err);
}

int32_t rung_journal_open(const char *dir, enum rung_journal_mode mode, struct rung_journal **out,
                          struct rung_error *err)
{
    if (strlen(dir) > 4000)
        return rung_fail(err, RUNG_EINVAL, "journal.path", "the run folder's path is too long");
    int32_t status = mode == RUNG_JOURNAL_CREATE ? rung_make_dirs(dir, err) : RUNG_OK;
    if (status)
        return status;
    struct rung_journal *j = rung_xcalloc(1, sizeof *j);
    pthread_mutex_init(&j->lock, NULL);
    j->dir = rung_xstrdup(dir);
    j->lock_fd = -1;
    status = set_up(j, mode, err);
    if (status)
        rung_journal_close(j);
    else
        *out = j;
    return status;
}

void rung_journal_close(struct rung_journal *j)
{
    if (!j)
        return;
    sqlite3_finalize(j->insert);
    sqlite3_finalize(j->find);
    sqlite3_finalize(j->count);
    sqlite3_close(j->db);
    if (j->lock_fd >= 0)
        close(j->lock_fd);
    pthread_mutex_destroy(&j->lock);
    free(j->dir);
    free(j);
}

const char *rung_journal_dir(const struct rung_journal *j)
{
    return j->dir;
}

int32_t rung_journal_append(struct rung_journal *j, const char *type, const char *key,
                            const cJSON *payload, uint64_t *seq, struct rung_error *err)
{
    char *json = rung_json_line(payload);
    if (!json)
        return rung_fail(err, RUNG_ENOMEM, "journal.json", "%s: out of memory", j->dir);
    pthread_mutex_lock(&j->lock);
    sqlite3_bind_int64(j->insert, 1, rung_wall_ms());
    sqlite3_bind_text(j->insert, 2, type, -1, SQLITE_STATIC);
    sqlite3_bind_text(j->insert, 3, key, -1, SQLITE_STATIC);
    sqlite3_bind_text(j->insert, 4, json, -1, SQLITE_STATIC);
    int rc = sqlite3_step(j->insert);
    int32_t status = RUNG_OK;
    if (rc == SQLITE_CONSTRAINT)
        status = rung_fail(err, RUNG_EINVAL, "journal.twice", "%s: %s '%s' is recorded already",
                           j->dir, type, key);
    else if (rc != SQLITE_DONE)
        status = db_fail(j, err, "can't be written");
    else if (seq)
        *seq = (uint64_t)sqlite3_last_insert_rowid(j->db);
    sqlite3_reset(j->insert);
    sqlite3_clear_bindings(j->insert);
    pthread_mutex_unlock(&j->lock);
    free(json);
    return status;
}

static cJSON *column_json(sqlite3_stmt *stmt, int column)
{
    const char *text = (const char *)sqlite3_column_text(stmt, column);
    return text ? rung_json_parse(text, (size_t)sqlite3_column_bytes(stmt, column)) : NULL;
}

cJSON *rung_journal_find(struct rung_journal *j, const char *type, const char *key, uint64_t *seq)
{
    cJSON *json = NULL;
    pthread_mutex_lock(&j->lock);
    sqlite3_bind_text(j->find, 1, type, -1, SQLITE_STATIC);
    sqlite3_bind_text(j->find, 2, key, -1, SQLITE_STATIC);
    if (sqlite3_step(j->find) == SQLITE_ROW) {
        json = column_json(j->find, 1);
        if (seq)
            *seq = (uint64_t)sqlite3_column_int64(j->find, 0);
    }
    sqlite3_reset(j->find);
    sqlite3_clear_bindings(j->find);
    pthread_mutex_unlock(&j->lock);
    return json;
}

uint64_t rung_journal_count(struct rung_journal *j, const char *type)
{
    uint64_t n = 0;
    pthread_mutex_lock(&j->lock);
    sqlite3_bind_text(j->count, 1, type, -1, SQLITE_STATIC);
    if (sqlite3_step(j->count) == SQLITE_ROW)
        n = (uint64_t)sqlite3_column_int64(j->count, 0);
    sqlite3_reset(j->count);
    pthread_mutex_unlock(&j->lock);
    return n;
}

/* One row to the visitor. false ends the walk; *status tells why when that is a fault. */
static bool visit_row(struct rung_journal *j, sqlite3_stmt *stmt,
                      bool (*visit)(void *, const struct rung_record *), void *ctx, int32_t *status,
                      struct rung_error *err)
{
    cJSON *json = column_json(stmt, 4);
    struct rung_record record = {
        .seq = (uint64_t)sqlite3_column_int64(stmt, 0),
        .wall_ms = sqlite3_column_int64(stmt, 1),
        .type = (const char *)sqlite3_column_text(stmt, 2),
        .key = (const char *)sqlite3_column_text(stmt, 3),
        .json = json,
    };
    if (!json || !record.type || !record.key) {
        *status =
            rung_fail(err, RUNG_EIO, "journal.record",
                      "%s/journal.db: record %llu is damaged (the file was cut or changed); what "
                      "stands before it can be shown, but the run can't go on: start a new one",
                      j->dir, (unsigned long long)record.seq);
        cJSON_Delete(json);
        return false;
    }
    bool more = visit(ctx, &record);
    cJSON_Delete(json);
    return more;
}

int32_t rung_journal_each(struct rung_journal *j, const char *type, uint64_t after,
                          bool (*visit)(void *ctx, const struct rung_record *record), void *ctx,
                          struct rung_error *err)
{
    static const char sql[] = "SELECT seq, wall_ms, type, key, json FROM records"
                              " WHERE seq > ? AND (?2 IS NULL OR type = ?2) ORDER BY seq";
    sqlite3_stmt *stmt = NULL;
    int32_t status = RUNG_OK;
    pthread_mutex_lock(&j->lock);
    if (sqlite3_prepare_v2(j->db, sql, -1, &stmt, NULL) != SQLITE_OK)
        status = db_fail(j, err, "can't be read");
    sqlite3_bind_int64(stmt, 1, (int64_t)after);
    if (type)
        sqlite3_bind_text(stmt, 2, type, -1, SQLITE_STATIC);
    int rc = SQLITE_DONE;
    while (!status && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        if (!visit_row(j, stmt, visit, ctx, &status, err))
            break;
    if (!status && rc != SQLITE_DONE && rc != SQLITE_ROW)
        status = db_fail(j, err, "can't be read");
    sqlite3_finalize(stmt);
    pthread_mutex_unlock(&j->lock);
    return status;
}
