/*
 * The parts of `rung doctor`: what of this machine rung can use, what is missing, and the command
 * that brings it. Everything foreign runs in children (cli/child.h), so a driver that hangs or a
 * plugin that crashes is a line of the report. Each part adds its findings to `report` and prints
 * them unless it is to be printed as JSON. [main]
 */
#ifndef CLI_DOCTOR_DOCTOR_H
#define CLI_DOCTOR_DOCTOR_H

#include "base/json.h"

struct doctor {
    cJSON *report;   /* the object of `rung doctor --json` */
    bool json;       /* print nothing but the object, later */
    bool quick;      /* no kernels are timed */
    bool insecure;   /* load plugin files that others may write */
    unsigned faults; /* findings without which `rung run` can't work here */
    cJSON *plugins;  /* of `rung plugin list --json` */
};

/* Prints a line of people's text, unless the report is JSON. */
void doctor_say(const struct doctor *d, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* "  word        text": one finding. */
void doctor_row(const struct doctor *d, const char *word, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Every installed plugin, started: devices with all that they say, and those that can't start with
 * what they lack. */
void doctor_plugins(struct doctor *d);
/* Bandwidth and peaks of each device that measures: the kernels of config/doctor, timed. */
void doctor_rates(struct doctor *d);
/* What kernels are compared with here: every baseline plugin on a small product. */
void doctor_baselines(struct doctor *d);
/* Rights to performance counters, Python with torch, keys of model providers. */
void doctor_system(struct doctor *d);
/* The models of a pipeline, each asked one tiny thing; the exit status. */
int doctor_llms(struct doctor *d, const char *pipeline, const char *const *sets, size_t n_sets);

#endif
