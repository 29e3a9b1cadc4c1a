/* Comparing plans and launches with what a reply's .cfg says. One thread. */
#ifndef TESTS_CODEGEN_CORPUS_PLAN_H
#define TESTS_CODEGEN_CORPUS_PLAN_H

#include "base/node.h"
#include "base/text.h"
#include "task/plan.h"

/* Both tell what differs in *why and return false. */

/* Whether the plan is the lines of the list, but for blanks and redundant parentheses. */
bool corpus_same_plan(struct rung_arena *arena, const struct rung_task *task,
                      const struct rung_plan *plan, const struct rung_node *lines,
                      struct rung_buf *why);
/* Whether the plan launches at the item's dims what the item says. */
bool corpus_launches(struct rung_arena *arena, const struct rung_task *task,
                     const struct rung_plan *plan, const struct rung_node *item,
                     struct rung_buf *why);

#endif
