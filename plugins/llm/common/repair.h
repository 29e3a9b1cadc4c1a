/* A refusal that names a parameter of the request. Pure. */
#ifndef LLM_COMMON_REPAIR_H
#define LLM_COMMON_REPAIR_H

#include "hints.h"
#include "models.h"

/*
 * The knob among `sent` that a reply of status 400 or 422 turns away, and in *word the name by
 * which the server calls it (static); 0: none. The error's own "param" goes before its text, and
 * what stands first before what follows. cap: the name of the cap that was sent; it is turned away
 * only as a name, not for its value.
 */
uint32_t llm_repair(const struct llm_wire *wire, const cJSON *json, uint32_t sent, const char *cap,
                    const char **word);

#endif
