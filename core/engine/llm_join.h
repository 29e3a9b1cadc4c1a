/* A reply in several pieces as one text. Pure. */
#ifndef ENGINE_LLM_JOIN_H
#define ENGINE_LLM_JOIN_H

#include "base/text.h"

/*
 * Adds the continuation of a text that was cut off. Models repeat themselves: what the piece says
 * again of the text's end is left out, and so is a fence that opens the block anew in which the
 * text stopped. A piece that starts the whole text over takes its place.
 */
void llm_join(struct rung_buf *text, const char *piece, size_t n);

#endif
