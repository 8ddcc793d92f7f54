/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sources: opening what credentials come from, for the keeper. The supervisor hands out descriptors
 * and never reads a value: files are opened, programs run with a pipe as their output, variables
 * come as pipes from `vethguard run`.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_SOURCES_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_SOURCES_H

#include "supervisor/os/identity.h"
#include "vethguard/loop/loop.h"
#include "vethguard/policy/policy.h"

#define SOURCE_ERROR_MAX 512
#define SOURCE_PATH_MAX 4096

struct source_run;  /* a program under way */
struct source_read; /* a file that a child reads */

struct sources {
	struct loop *loop;
	const struct policy *policy;           /* borrowed */
	struct identity identity;              /* of the invoking user */
	char directory[4096];                  /* where exec: programs start; empty: "/" */
	int variables[POLICY_CREDENTIALS_MAX]; /* pipes with values of env: sources, -1: none or
	                                          given out */
	struct source_run *runs[POLICY_CREDENTIALS_MAX];   /* at most one program per credential */
	struct source_read *reads[POLICY_CREDENTIALS_MAX]; /* and one reader */
	/* sources_remember_covered(), by credential; owned; NULL: nothing is covered. */
	struct source_identity {
		dev_t device;
		ino_t inode; /* 0: there was none */
	} * covered;
	/* fd >= 0: the callee's, to be read to its end; else error is one sentence. id as given to
	 * sources_open. */
	void (*on_source)(struct sources *sources, uint64_t id, int fd, const char *error);
};

void sources_init(struct sources *sources, struct loop *loop, const struct policy *policy,
        void (*on_source)(struct sources *sources, uint64_t id, int fd, const char *error));
/* Kills what runs. No callback follows. */
void sources_stop(struct sources *sources);
/* The same, and closes what is kept. */
void sources_fini(struct sources *sources);
/* Answers through on_source, at once or when the program has ended. credential may be out of range.
 */
void sources_open(struct sources *sources, uint64_t id, uint32_t credential);
/* Tells which files could not serve if they were asked just then, a sentence each: for whoever has
 * just named them. No value is read, no program run, and nothing waited for: a file that may not be
 * local is not looked at. */
void sources_examine(const struct sources *sources, void (*tell)(void *context, const char *fault),
        void *context);

/* From now on tells, in the log, of each file that is another one than is there now: `vethguard
 * run` covers these, and its command may read any other. */
void sources_remember_covered(struct sources *sources);

/* The file at path, if it may serve as a credential. wait: however long that takes, else only a
 * local one (local_file.h). The descriptor, or -1 with one sentence in error; LOCAL_FILE_UNKNOWN:
 * whether it is local cannot be known, with a sentence as well. */
int source_file_open(
        const struct identity *id, const char *path, bool wait, char error[SOURCE_ERROR_MAX]);

#define SOURCE_READ_MS 5000 /* for a file that is not local */
/* Has a child read the file of a credential that may not be local into a pipe. As with programs,
 * sources_read_ended() is called once, with the pipe's read end. NULL: it could not be started,
 * error says why. */
struct source_read *source_read_start(struct sources *sources, const char *path, uint64_t id,
        uint32_t index, char error[SOURCE_ERROR_MAX]);
void source_read_free(struct source_read *read);
/* From the reader: its end. */
void sources_read_ended(
        struct sources *sources, uint32_t index, uint64_t id, int fd, const char *error);
/* Starts the program of a credential; on_done comes once, with the read end of its output (the
 * callee's) or -1 and a sentence. NULL: it could not be started, error says why. */
struct source_run *source_run_start(struct sources *sources,
        const struct policy_credential *credential, uint64_t id, uint32_t index,
        char error[SOURCE_ERROR_MAX]);
void source_run_free(struct source_run *run);
/* From the run: its end. */
void sources_run_ended(
        struct sources *sources, uint32_t index, uint64_t id, int fd, const char *error);

#endif
