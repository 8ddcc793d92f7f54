/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest: the guarded command and the small init above it. guest.c is the parent's side;
 * guest/init.c is PID 1 of the sandbox. They exchange struct guest_message over a socket pair of
 * their own.
 */
#ifndef VETHGUARD_SRC_CLI_GUEST_GUEST_H
#define VETHGUARD_SRC_CLI_GUEST_GUEST_H

#include <signal.h>

#include "vethguard/adapter/environment.h"
#include "cli/run/namespaces.h"
#include "vethguard/base/ip.h"

/* Everything that init needs to know; init has it through fork. */
struct guest_plan {
	char **command;
	struct environment env;
	const struct run_user *user;
	struct namespaces ns;
	bool rootless;
	struct slice root_pem; /* the sandbox's CA */
	size_t file_count;     /* files of credentials, which are covered */
	const struct slice *files;
	size_t device_count; /* that the operator permits; paths in /dev */
	const char *const *devices;
	struct ip gate4, gate6;
	char directory[PATH_MAX]; /* working directory */
	int terminal;             /* controlling terminal, or -1 */
	sigset_t signal_mask;     /* of the command: our mask before we blocked anything */
	bool foreground;          /* we own the terminal, and the command gets it */
};

enum guest_message_kind {
	GUEST_FAILED,   /* init -> parent: text; nothing runs */
	GUEST_NOT_RUN,  /* init -> parent: value: errno of execve */
	GUEST_STOPPED,  /* init -> parent: the command was stopped by signal value */
	GUEST_EXITED,   /* init -> parent: value: its wait status */
	GUEST_SIGNAL,   /* parent -> init: deliver signal value to the command */
	GUEST_CONTINUE, /* parent -> init: continue; value 1: in the foreground */
};

struct guest_message {
	enum guest_message_kind kind;
	int value;
	struct failure failure;
};

struct guest {
	pid_t pid; /* of init, as seen from outside */
	int pidfd;
	int socket;
};

/* Starts init, which dies with us, and everything in the sandbox with it. Returns 0, or -errno with
 * a text. */
int guest_start(struct guest *s, const struct guest_plan *plan, struct failure *failure);
/* Receives the next message from init. Returns 0; -EPIPE: init is gone. */
int guest_receive(const struct guest *s, struct guest_message *out);
void guest_send(const struct guest *s, enum guest_message_kind kind, int value);
/* Kills everything inside and waits until it is gone. Does nothing if it is gone already. */
void guest_kill(struct guest *s);

/* PID 1 (guest/init.c); never returns. */
void guest_init(const struct guest_plan *plan, int socket) __attribute__((noreturn));
/* guest/mounts.c: makes the mounts. *pty: a descriptor to keep open as long as the sandbox lives,
 * or -1. Returns 0, or -errno with a text. */
int guest_mounts(const struct guest_plan *plan, int *pty, struct failure *failure);

#endif
