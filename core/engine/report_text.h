/* The report of one variant (the object of `rung eval --json`) as lines for people. */
#ifndef ENGINE_REPORT_TEXT_H
#define ENGINE_REPORT_TEXT_H

#include <cjson/cJSON.h>
#include <stdio.h>

/* Device, rungs with their details, time a shape, registers. report may be NULL. */
void rung_report_print(FILE *out, const cJSON *report);

/*
 * What re-timing a run's winner came to (`final` of its summary): time, and each one that took
 * turns with it. json may be NULL.
 */
void rung_report_final(FILE *out, const cJSON *json);

#endif
