/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hostile: the real keeper, worker, recorder, fetch or gateway, main.c and jail and all, that turns
 * against the others at the moment in which it is trusted: right after the message that says it
 * serves (a fetch: right before its answer). Which misdeed it does is in the file "misdeed" beside
 * the program, read before main(). What comes of it is told on standard error: "misdeed NAME:
 * RESULT", where RESULT is "done" or the name of an error.
 */
#ifndef VETHGUARD_TESTS_HOSTILE_HOSTILE_H
#define VETHGUARD_TESTS_HOSTILE_HOSTILE_H

#include <stddef.h>
#include <stdint.h>

struct misdeed {
	const char *name;
	long (*what)(void); /* -1 with errno where the kernel refused */
};

/* End with a NULL name. calls.c: one system call each. words.c: what others hear and read. */
extern const struct misdeed misdeed_calls[], misdeed_words[];

#define HOSTILE_SUPERVISOR_FD 3
/* The worker's end of its pair with the keeper; -1: not a worker. */
int hostile_keeper_fd(void);
/* The id of the message that said that this role serves. */
uint64_t hostile_last_id(void);
/* Does one misdeed and tells what came of it. */
void hostile_do(const struct misdeed *misdeed);

#endif
