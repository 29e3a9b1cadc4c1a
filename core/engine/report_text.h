/* The report of one variant (the object of `rung eval --json`) as lines for people. */
#ifndef ENGINE_REPORT_TEXT_H
#define ENGINE_REPORT_TEXT_H

#include <cjson/cJSON.h>
#include <stdio.h>

/* Device, rungs with their details, time a shape, registers. report may be NULL. */
void rung_report_print(FILE *out, const cJSON *report);

#endif
