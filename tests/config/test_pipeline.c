/* The typed pipeline: the shipped files, every key, every fault. */
#include "support/support.h"

#include "config/config.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static struct rung_arena *arena;
static struct rung_diags diags;

static int setup(void **state)
{
    (void)state;
    arena = rung_arena_new();
    setenv("XDG_CONFIG_HOME", "/nowhere", 1);
    return arena == NULL;
}

static int teardown(void **state)
{
    (void)state;
    rung_diags_free(&diags);
    rung_arena_free(arena);
    return 0;
}

/* The text merged over the built-in pipeline. */
static const struct rung_pipeline *read(const char *text)
{
    rung_diags_free(&diags);
    struct rung_node *root = rung_config_pipeline(arena, NULL, SOURCE_CONFIG, NULL, 0, &diags);
    struct rung_node *over = rung_config_parse(arena, text, "dir/p.cfg", &diags);
    if (!root || !over)
        fail_msg("%s", rung_buf_text(&diags.text));
    const struct rung_pipeline *p =
        rung_pipeline_read(arena, rung_config_merge(arena, root, over), &diags);
    assert_true((p != NULL) == (diags.n == 0));
    return p;
}

static const struct rung_pipeline *good(const char *text)
{
    const struct rung_pipeline *p = read(text);
    if (!p)
        fail_msg("%s", rung_buf_text(&diags.text));
    return p;
}

static void the_built_in_pipeline_stands(void **state)
{
    (void)state;
    const struct rung_pipeline *p = good("");
    assert_null(p->task);
    assert_int_equal(p->n_llms, 0);
    assert_string_equal(p->codegen.plugin, "cuda");
    assert_string_equal(p->compiler.plugin, "nvrtc");
    assert_string_equal(p->search.plugin, "branching");
    assert_string_equal(p->devices[0].plugin, "cuda");
    assert_string_equal(p->devices[1].plugin, "ptx");
    assert_int_equal(p->n_timers, 2);
    assert_string_equal(p->timers[0].name, "events");
    assert_string_equal(p->timers[1].name, "model");
    assert_string_equal(p->references[0].plugin, "ops");
    assert_string_equal(p->rungs[0].plugin, "numeric");
    assert_null(p->rungs[0].on_devices);
    assert_int_equal(p->n_workers, 1);
    assert_string_equal(p->workers[0].device, "auto");
    assert_null(p->workers[0].launch[0]);
    assert_true(p->limits.check_s == 120);
    assert_int_equal(p->limits.llm_parallel, 4);
    assert_int_equal(p->budget.evaluations, 0);
    assert_null(p->plugin_path[0]);
}

static void every_key_is_read(void **state)
{
    (void)state;
    const struct rung_pipeline *p =
        good("task = \"../t.cfg\"; plugin_path = ( \"plugins\", \"/abs\" );\n"
             "llm = ( { name = \"w\"; plugin = \"replay\"; roles = ( \"code\" ); weight = 2; file "
             "= \"x\"; },\n"
             "        { plugin = \"mailbox\"; roles = \"ideas\"; } );\n"
             "rungs = ( { plugin = \"numeric\"; }, { name = \"n2\"; plugin = \"numeric\"; on = "
             "\"ptx\"; } );\n"
             "workers = ( { launch = [ \"srun\", \"-n1\" ]; device = \"cuda\"; count = 16; rung = "
             "\"/opt/rung\"; } );\n"
             "limits = { compile = 90; time = \"500ms\"; compile_repairs = 0; };\n"
             "budget = { usd = 10.5; evaluations = 500; calls = 9; tokens = 5000000000L; wall = "
             "\"2h\"; };\n");
    assert_string_equal(p->task, "dir/../t.cfg");
    assert_int_equal(p->plugin_path[0][0], '/');
    support_contains(p->plugin_path[0], "/dir/plugins");
    assert_string_equal(p->plugin_path[1], "/abs");
    assert_null(p->plugin_path[2]);
    assert_int_equal(p->n_llms, 2);
    assert_string_equal(p->llms[0].name, "w");
    assert_string_equal(p->llms[0].roles[0], "code");
    assert_true(p->llms[0].weight == 2);
    assert_non_null(rung_node_get(p->llms[0].settings, "file"));
    assert_string_equal(p->llms[1].name, "mailbox");
    assert_string_equal(p->llms[1].roles[0], "ideas");
    assert_string_equal(p->rungs[1].on_devices[0], "ptx");
    assert_string_equal(p->workers[0].launch[1], "-n1");
    assert_null(p->workers[0].launch[2]);
    assert_int_equal(p->workers[0].count, 16);
    assert_string_equal(p->workers[0].rung, "/opt/rung");
    assert_true(p->limits.compile_s == 90);
    assert_true(p->limits.time_s == 0.5);
    assert_int_equal(p->limits.compile_repairs, 0);
    assert_true(p->limits.start_s == 60);
    assert_true(p->budget.tokens == 5000000000);
    assert_true(p->budget.wall_s == 7200);
    assert_true(p->budget.usd == 10.5);
    assert_string_equal(p->file, "dir/p.cfg");
}

static void http_is_for_the_whole_process(void **state)
{
    (void)state;
    const struct rung_pipeline *p = good("");
    assert_int_equal(p->http.version, 0);
    assert_null(p->http.proxy);
    assert_null(p->http.ca);
    p = good("http = { version = \"2\"; proxy = \"http://proxy.example:3128\"; ca = "
             "\"/etc/passwd\"; };");
    assert_int_equal(p->http.version, 2);
    assert_string_equal(p->http.proxy, "http://proxy.example:3128");
    assert_string_equal(p->http.ca, "/etc/passwd");
    p = good("http = { version = \"1.1\"; proxy = \"\"; };");
    assert_int_equal(p->http.version, 1);
    assert_string_equal(p->http.proxy, "");
}

static void timing_has_defaults_and_takes_others(void **state)
{
    (void)state;
    struct rung_timing_settings t = good("")->timing;
    assert_true(t.delta == 0.01 && t.budget_s == 5 && t.rounds == 10 && t.processes == 3);
    t = good("timing = { delta = 0.002; budget = \"500ms\"; rounds = 20; processes = 5; };")
            ->timing;
    assert_true(t.delta == 0.002 && t.budget_s == 0.5 && t.rounds == 20 && t.processes == 5);
}

static void keys_of_the_later_stages_are_read(void **state)
{
    (void)state;
    const struct rung_pipeline *p = good(
        "llm = ( { plugin = \"a\"; price = { input = 3; output = 15.0; cache_read = 0.3; }; },\n"
        "        { plugin = \"b\"; } );\n"
        "rungs = ( { plugin = \"numeric\"; }, { plugin = \"s\"; on = ( \"ptx\", \"cuda\" ); when = "
        "\"best\"; },\n"
        "          { plugin = \"./t.so\"; when = \"final\"; } );\n"
        "timing = { timer = \"events\"; baselines = ( \"cublas\", { plugin = \"torch\"; python = "
        "\"x\"; } ); };\n"
        "profile = ( { plugin = \"cupti\"; }, { plugin = \"c2\"; when = \"final\"; } );\n"
        "context = ( { path = \"lib\"; } );\n"
        "stop = { roofline = 0.9; patience = 3; target = \"412us\"; };\n"
        "examples = ( { plugin = \"catalog\"; }, { plugin = \"x\"; count = 5; } );\n");
    assert_true(p->llms[0].price.given);
    assert_true(p->llms[0].price.input == 3 && p->llms[0].price.output == 15);
    assert_true(p->llms[0].price.cache_read == 0.3 && p->llms[0].price.cache_write_5m == 3);
    assert_true(p->llms[0].price.cache_write_1h == 3);
    assert_false(p->llms[1].price.given);
    assert_int_equal(p->rungs[0].when, RUNG_WHEN_ALWAYS);
    assert_null(p->rungs[0].on_devices);
    assert_int_equal(p->rungs[1].when, RUNG_WHEN_BEST);
    assert_string_equal(p->rungs[1].on_devices[0], "ptx");
    assert_string_equal(p->rungs[1].on_devices[1], "cuda");
    assert_null(p->rungs[1].on_devices[2]);
    assert_int_equal(p->rungs[2].when, RUNG_WHEN_FINAL);
    assert_int_equal(p->n_baselines, 2);
    assert_string_equal(p->rungs[2].name, "./t.so");
    assert_int_equal(p->rungs[2].plugin[0], '/');
    support_contains(p->rungs[2].plugin, "/dir/./t.so");
    assert_string_equal(p->baselines[0].plugin, "cublas");
    assert_null(p->baselines[0].settings);
    assert_string_equal(p->baselines[1].name, "torch");
    assert_non_null(rung_node_get(p->baselines[1].settings, "python"));
    assert_int_equal(p->n_profiles, 2);
    assert_int_equal(p->profiles[0].when, RUNG_WHEN_BEST);
    assert_int_equal(p->profiles[1].when, RUNG_WHEN_FINAL);
    assert_string_equal(p->contexts[0].path, "dir/lib");
    assert_true(p->stop.roofline == 0.9 && p->stop.target_s == 412e-6);
    assert_int_equal(p->stop.patience, 3);
    assert_int_equal(p->examples[0].count, 2);
    assert_int_equal(p->examples[1].count, 5);
}

static void one_timer_can_be_chosen(void **state)
{
    (void)state;
    const struct rung_pipeline *p =
        good("timers = ( { plugin = \"a\"; }, { name = \"b\"; plugin = \"bb\"; x = 1; } ); "
             "timing = { timer = \"b\"; };");
    assert_int_equal(p->n_timers, 1);
    assert_string_equal(p->timers[0].plugin, "bb");
    assert_non_null(p->timers[0].settings);
    p = good("timing = { timer = \"mylab\"; };");
    assert_int_equal(p->n_timers, 1);
    assert_string_equal(p->timers[0].plugin, "mylab");
    assert_null(p->timers[0].settings);
}

static const struct {
    const char *text, *want;
} faults[] = {
    {"\nlmm = ();", "dir/p.cfg:2: a pipeline has no setting 'lmm'; did you mean 'llm'?"},
    {"llm = {};", "'llm' must be a list, but it is a group"},
    {"llm = ( 1 );", "'llm' must hold groups"},
    {"llm = ( {} );", "item 0 of 'llm' lacks 'plugin'"},
    {"llm = ( { plugin = 5; } );", "'plugin' must be a string"},
    {"llm = ( { plugin = \"\"; } );", "'plugin' is empty"},
    {"llm = ( { plugin = \"a\"; name = \"\"; } );", "'name' is empty"},
    {"llm = ( { plugin = \"a\"; }, { plugin = \"a\"; } );", "two items named 'a'"},
    {"llm = ( { plugin = \"a\"; roles = ( \"cod\" ); } );", "no role \"cod\""},
    {"llm = ( { plugin = \"a\"; roles = ( \"ideas\", \"repair\" ); } );",
     "no llm has the role \"code\""},
    {"llm = ( { plugin = \"a\"; roles = ( ); } );", "'roles' is empty"},
    {"llm = ( { plugin = \"a\"; roles = ( 1 ); } );", "'roles' must hold strings"},
    {"llm = ( { plugin = \"a\"; weight = -1; } );", "between 0 and"},
    {"llm = ( { plugin = \"a\"; weight = \"x\"; } );", "a finite number"},
    {"llm = ( { plugin = \"a\"; price = 3; } );", "'price' must be a group"},
    {"llm = ( { plugin = \"a\"; price = { input = 3; }; } );", "price lacks 'output'"},
    {"llm = ( { plugin = \"a\"; price = { input = -1; output = 2; }; } );", "between 0 and"},
    {"llm = ( { plugin = \"a\"; price = { input = 1; outptu = 2; }; } );",
     "did you mean 'output'?"},
    {"rungs = ( { plugin = \"a\"; when = \"often\"; } );",
     "'when' can't be \"often\"; it is one of always, best, final"},
    {"rungs = ( { plugin = \"a\"; on = (); } );", "'on' is empty"},
    {"rungs = ( { plugin = \"a\"; on = \"auto\"; } );", "not \"auto\""},
    {"rungs = ( { plugin = \"a\"; on = 4; } );", "'on' must be a list of strings"},
    {"profile = ( { plugin = \"a\"; when = 1; } );", "'when' must be a string"},
    {"profile = 5;", "'profile' must be a list"},
    {"context = ( { } );", "item 0 of 'context' lacks 'path'"},
    {"context = ( { path = \"\"; } );", "'path' is empty"},
    {"context = ( { path = \"a\"; pth = 1; } );", "did you mean 'path'?"},
    {"context = ( \"a\" );", "must hold groups such as { path"},
    {"examples = ( { plugin = \"a\"; count = 0; } );", "between 1 and 16"},
    {"stop = { roofline = 1.5; };", "'roofline' is 1.5, but it must lie between 0 and 1"},
    {"stop = { patience = 2.5; };", "'patience' must be an integer"},
    {"stop = { target = \"fast\"; };", "'target' must be a duration"},
    {"stop = { patient = 2; };", "did you mean 'patience'?"},
    {"timing = { timer = \"\"; };", "'timer' is empty"},
    {"timing = { baselines = \"a\"; };", "'baselines' must be a list"},
    {"timing = { baselines = ( 5 ); };", "names of plugins"},
    {"timing = { delta = 0.0; };", "delta"},
    {"timing = { delta = 0.6; };", "delta"},
    {"timing = { rounds = 5; };", "rounds"},
    {"timing = { processes = 0; };", "processes"},
    {"timing = { budget = \"0s\"; };", "'budget' must be longer than 0 s"},
    {"timing = { budget = \"2h\"; };", "at most 3600 s"},
    {"timing = { round = 12; };", "did you mean 'rounds'?"},
    {"timing = { baselines = ( \"\" ); };", "an empty text"},
    {"timing = { baselines = ( \"a\", \"a\" ); };", "two items named 'a'"},
    {"base = \"x.cfg\";", "'base' can stand in a file only"},
    {"codegen = 5;", "'codegen' must be a group"},
    {"search = { plugin = 4; };", "'plugin' must be a string"},
    {"devices = \"cuda\";", "'devices' must be a list"},
    {"timing = { timr = \"a\"; };", "timing has no setting 'timr'; did you mean 'timer'?"},
    {"workers = ();", "no workers"},
    {"workers = ( { count = 0; } );", "between 1 and 4096"},
    {"workers = ( { cuont = 1; } );", "did you mean 'count'?"},
    {"workers = ( { launch = ( 1 ); } );", "'launch' must hold strings"},
    {"workers = ( { launch = \"srun -u\"; } );", "a list of words"},
    {"workers = ( { launch = ( \"\" ); } );", "first word of 'launch' is empty"},
    {"workers = ( { device = \"\"; } );", "'device' is empty"},
    {"workers = ( { count = 4096; }, { count = 1; } );", "4097 workers; 4096 are allowed"},
    {"limits = { check = \"10 parsecs\"; };", "'check' must be a duration"},
    {"limits = { check = \"12d\"; };", "'check' must be at most 1e+06 s"},
    {"budget = { wall = 1e300; };", "'wall' must be at most 1e+09 s"},
    {"limits = { check = 0; };", "longer than 0 s"},
    {"limits = { llm_parallel = 0; };", "between 1 and 1024"},
    {"limits = { compile_repairs = 1.5; };", "'compile_repairs' must be an integer"},
    {"limits = { chek = 1; };", "did you mean 'check'?"},
    {"limits = 1;", "'limits' must be a group"},
    {"budget = { usd = \"ten\"; };", "'usd' must be a finite number"},
    {"budget = { usd = -1; };", "between 0 and"},
    {"budget = { evals = 1; };", "budget has no setting 'evals'"},
    {"http = 2;", "'http' must be a group"},
    {"http = { version = \"3\"; };", "it is one of 1.1, 2"},
    {"http = { version = 2; };", "'version' must be"},
    {"http = { proxy = \"proxy.example:3128\"; };", "'proxy' is a URL such as"},
    {"http = { proxy = \"ftp://proxy.example\"; };", "'proxy' is a URL such as"},
    {"http = { proxy = \"http://\"; };", "'proxy' is a URL such as"},
    {"http = { proxy = \"http://me:word@proxy.example\"; };", "environment variable https_proxy"},
    {"http = { ca = \"\"; };", "'ca' is empty"},
    {"http = { ca = \"/nonexistent/ca.pem\"; };", "'ca' can't be read"},
    {"http = { verify = false; };", "http has no setting 'verify'"},
    {"budget = { evaluations = -1; };", "at least 0"},
    {"task = 5;", "'task' must be a string"},
    {"task = \"\";", "'task' is empty"},
    {"plugin_path = 5;", "'plugin_path' must be a list of strings"},
    {"plugin_path = ( \"\" );", "an empty path"},
};

static void every_fault_is_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        if (read(faults[i].text))
            fail_msg("accepted: %s", faults[i].text);
        assert_memory_equal(rung_buf_text(&diags.text), "dir/p.cfg:", 10);
        support_contains(rung_buf_text(&diags.text), faults[i].want);
    }
}

static void many_faults_are_told_at_once(void **state)
{
    (void)state;
    assert_null(read("lmm = 1;\ncodegen = { };\nworkers = ( { count = \"x\"; } );\nbudget = { "
                     "calls = \"y\"; };\n"
                     "codegn = 1;\n"));
    const char *text = rung_buf_text(&diags.text);
    support_contains(text, "dir/p.cfg:1:");
    support_contains(text, "dir/p.cfg:3:");
    support_contains(text, "dir/p.cfg:4:");
    support_contains(text, "dir/p.cfg:5:");
    assert_int_equal(diags.n, 4);
}

static void a_tree_without_the_built_in_lacks_its_keys(void **state)
{
    (void)state;
    struct rung_node *root = rung_config_parse(arena, "limits = { };", "p.cfg", &diags);
    assert_null(rung_pipeline_read(arena, root, &diags));
    static const char *const lacks[] = {"codegen", "compiler",        "search",
                                        "start",   "compile",         "check",
                                        "time",    "compile_repairs", "llm_parallel"};
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++)
        support_contains(rung_buf_text(&diags.text),
                         rung_arena_printf(arena, "lacks '%s'", lacks[i]));
}

static void shipped_pipelines_are_right(void **state)
{
    (void)state;
    const char *folder = SOURCE_CONFIG "/pipelines";
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        if (n < 5 || strcmp(entry->d_name + n - 4, ".cfg") != 0)
            continue;
        char *path = support_path(folder, entry->d_name);
        struct rung_node *root = rung_config_pipeline(arena, path, SOURCE_CONFIG, NULL, 0, &diags);
        if (!root || !rung_pipeline_read(arena, root, &diags))
            fail_msg("%s", rung_buf_text(&diags.text));
        free(path);
    }
    closedir(dir);
}

static void shipped_tasks_are_right(void **state)
{
    (void)state;
    const char *folder = SOURCE_CONFIG "/tasks";
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        if (n < 5 || strcmp(entry->d_name + n - 4, ".cfg") != 0)
            continue;
        char *path = support_path(folder, entry->d_name);
        struct rung_node *root = rung_config_task(arena, path, &diags);
        if (!root || !rung_task_read(arena, root, &diags))
            fail_msg("%s", rung_buf_text(&diags.text));
        free(path);
    }
    closedir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_built_in_pipeline_stands, setup, teardown),
        cmocka_unit_test_setup_teardown(every_key_is_read, setup, teardown),
        cmocka_unit_test_setup_teardown(http_is_for_the_whole_process, setup, teardown),
        cmocka_unit_test_setup_teardown(timing_has_defaults_and_takes_others, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_of_the_later_stages_are_read, setup, teardown),
        cmocka_unit_test_setup_teardown(one_timer_can_be_chosen, setup, teardown),
        cmocka_unit_test_setup_teardown(every_fault_is_told, setup, teardown),
        cmocka_unit_test_setup_teardown(many_faults_are_told_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(a_tree_without_the_built_in_lacks_its_keys, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(shipped_pipelines_are_right, setup, teardown),
        cmocka_unit_test_setup_teardown(shipped_tasks_are_right, setup, teardown),
    };
    return cmocka_run_group_tests_name("pipeline", tests, NULL, NULL);
}
