/*
 * What every cmocka test includes first: cmocka with the headers that it wants, temporary folders
 * and files. Failing to set up ends the test through cmocka. One thread.
 */
#ifndef TESTS_SUPPORT_H
#define TESTS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* A new, empty folder, mode 0700, on the heap (free with support_remove). */
char *support_folder(void);
/* Removes the folder with everything in it and frees the name. NULL is fine. */
void support_remove(char *folder);
/* folder/name on the heap. */
char *support_path(const char *folder, const char *name);
/* Writes a file (n bytes; support_write_text: up to the NUL). */
void support_write(const char *path, const void *bytes, size_t n);
void support_write_text(const char *path, const char *text);
/* The whole file with a closing NUL, on the heap; *n (may be NULL) is its size. */
char *support_read(const char *path, size_t *n);
/* Copies a file with mode 0755. */
void support_copy(const char *from, const char *to);
/* Number of entries of a folder, without . and .. */
size_t support_count(const char *folder);
/* Fails the test unless text holds part, showing both. */
void support_contains(const char *text, const char *part);

#endif
