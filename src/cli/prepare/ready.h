/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ready: the network namespaces that `vethguard prepare` makes: files DIRECTORY/PREFIX-NUMBER, each
 * known to the daemon as prepared under the name PREFIX-NUMBER. One command at a time works on a
 * directory.
 */
#ifndef VETHGUARD_SRC_CLI_PREPARE_READY_H
#define VETHGUARD_SRC_CLI_PREPARE_READY_H

#include <limits.h>

#include "cli/attach/commands.h"
#include "vethguard/wire/message.h"

#define READY_PREFIX_DEFAULT "ready"
#define READY_PREFIX_MAX 32
#define READY_DIRECTORY_MAX (PATH_MAX / 2)
#define READY_NUMBER_MAX 99999

struct ready {
	const char *directory, *prefix, *socket;
	const char *tap; /* name of a tap in each namespace; NULL: none */
	bool same;       /* addresses and MACs: see docs/prepare.md */
	int lock;
};

/* Takes the option netns-dir, prefix or tap. Returns false after a message. */
bool ready_option_take(struct ready *pool, const char *option, const char *value);
/* Makes the directory if it is missing, and waits for other commands that work there. Returns 0, or
 * an exit status after a message. */
int ready_open(struct ready *pool);
void ready_close(struct ready *pool);
/* True for a name that the pool gives. */
bool ready_owns(const struct ready *pool, const char *name);
/* The same for a path. *name: where the name begins in it. */
bool ready_owns_path(const struct ready *pool, const char *path, const char **name);
/* Makes the namespace of that name and has the daemon prepare it. A namespace that is there already
 * is replaced: what is in it stays with the processes that run in it. Returns 0, or an exit status
 * after a message, and then there is none. */
int ready_make(const struct ready *pool, const char *name);
/* Removes the namespace's file. */
int ready_remove(const struct ready *pool, const char *name);
/* Removes namespaces that nobody guards any more: those of claims that have ended by themselves,
 * and those that a killed command left. sandboxes, prepared: the daemon's answers. */
void ready_sweep(const struct ready *pool, const json_t *sandboxes, const json_t *prepared);
/* Writes the name with the lowest number above *number that has no file, and that number. Returns
 * false if there is none. */
bool ready_next_name(const struct ready *pool, unsigned *number, char name[MESSAGE_NAME_MAX + 1]);
/* The number of processes in the namespace. */
size_t ready_count_processes(const char *path);

#endif
