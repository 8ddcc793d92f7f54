/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guest: the guarded command and the small init above it. The parent's side is guest.c;
 * guest/init.c is PID 1 of the sandbox; both talk over a pair of their own in struct guest_message.
 */
#ifndef VETHGUARD_SRC_CLI_GUEST_GUEST_H
#define VETHGUARD_SRC_CLI_GUEST_GUEST_H

#include <signal.h>

#include "cli/run/environment.h"
#include "cli/run/namespaces.h"
#include "vethguard/base/ip.h"

/* All that init needs to know; it has it by fork. */
struct guest_plan {
	char **command;
	struct environment env;
	const struct run_user *user;
	struct namespaces ns;
	bool rootless;
	struct slice root_pem; /* the sandbox's CA */
	size_t file_count;     /* of credentials: covered */
	const struct slice *files;
	size_t device_count; /* that the operator lets in; paths in /dev */
	const char *const *devices;
	struct ip gate4, gate6;
	char directory[PATH_MAX]; /* working directory */
	int terminal;             /* controlling terminal, or -1 */
	sigset_t signal_mask;     /* of the command: ours before we blocked anything */
	bool foreground;          /* we own the terminal: the command gets it */
};

enum guest_message_kind {
	GUEST_FAILED,   /* init -> parent: text; nothing runs */
	GUEST_NOT_RUN,  /* init -> parent: value: errno of execve */
	GUEST_STOPPED,  /* init -> parent: the command was stopped by signal value */
	GUEST_EXITED,   /* init -> parent: value: its wait status */
	GUEST_SIGNAL,   /* parent -> init: deliver signal value to the command */
	GUEST_CONTINUE, /* parent -> init: go on; value 1: in the foreground */
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

/* Starts init. It dies with us, and everything in the sandbox with it. 0 or -errno with a text. */
int guest_start(struct guest *s, const struct guest_plan *plan, struct failure *failure);
/* Next message from init: 0; -EPIPE: it is gone. */
int guest_receive(const struct guest *s, struct guest_message *out);
void guest_send(const struct guest *s, enum guest_message_kind kind, int value);
/* Kills everything inside and waits until it is gone. Harmless when it is already. */
void guest_kill(struct guest *s);

/* PID 1 (guest/init.c); never returns. */
void guest_init(const struct guest_plan *plan, int socket) __attribute__((noreturn));
/* Mounts (guest/mounts.c); pty: a descriptor to keep for as long as the sandbox lives, or -1. 0 or
 * -errno with a text. */
int guest_mounts(const struct guest_plan *plan, int *pty, struct failure *failure);

#endif
