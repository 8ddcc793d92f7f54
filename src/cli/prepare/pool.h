/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: the network namespaces that `vethguard prepare` makes: files DIRECTORY/PREFIX-NUMBER, each
 * known to the daemon as prepared under the name PREFIX-NUMBER. One command at a time works on a
 * directory.
 */
#ifndef VETHGUARD_SRC_CLI_PREPARE_POOL_H
#define VETHGUARD_SRC_CLI_PREPARE_POOL_H

#include <limits.h>

#include "cli/attach/commands.h"
#include "vethguard/wire/message.h"

#define POOL_PREFIX_DEFAULT "ready"
#define POOL_PREFIX_MAX 32
#define POOL_NUMBER_MAX 99999

struct pool {
	const char *directory, *prefix, *socket;
	bool same; /* addresses and MACs: see docs/prepare.md */
	int lock;
};

/* Takes the option netns-dir or prefix. Returns false after a message. */
bool pool_option_take(struct pool *pool, const char *option, const char *value);
/* Makes the directory if it is missing, and waits for other commands that work there. Returns 0, or
 * an exit status after a message. */
int pool_open(struct pool *pool);
void pool_close(struct pool *pool);
/* True for a name that the pool gives. */
bool pool_owns(const struct pool *pool, const char *name);
/* The same for a path. *name: where the name begins in it. */
bool pool_owns_path(const struct pool *pool, const char *path, const char **name);
/* Makes the namespace of that name and has the daemon prepare it. A namespace that is there already
 * is replaced: what is in it stays with the processes that run in it. Returns 0, or an exit status
 * after a message, and then there is none. */
int pool_make(const struct pool *pool, const char *name);
/* Takes the namespace's file away. */
int pool_remove(const struct pool *pool, const char *name);
/* Takes away namespaces that nobody guards any more: of claims that have ended by themselves, and of
 * a command that was killed. sandboxes, prepared: the daemon's answers. */
void pool_sweep(const struct pool *pool, const json_t *sandboxes, const json_t *prepared);
/* Writes the name with the lowest number above *number that has no file, and that number. Returns
 * false if there is none. */
bool pool_next_name(const struct pool *pool, unsigned *number, char name[MESSAGE_NAME_MAX + 1]);
/* The number of processes in the namespace. */
size_t pool_count_processes(const char *path);

#endif
