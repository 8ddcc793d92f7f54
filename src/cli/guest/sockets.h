/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sockets: which Unix sockets the sandbox may reach: those that are the sandbox's own. A thread of
 * init answers for each call that names a socket (guest/sockets.c); guest/caller.c is the task that
 * called, guest/socket_name.c finds and judges the socket, guest/socket_send.c copies messages.
 */
#ifndef VETHGUARD_SRC_CLI_GUEST_SOCKETS_H
#define VETHGUARD_SRC_CLI_GUEST_SOCKETS_H

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "vethguard/jail/guest.h"

#define CALLER_GROUPS_MAX 256 /* further ones are not lent */

struct caller_ids {
	uid_t uid;
	gid_t gid;
	int group_count;
	gid_t groups[CALLER_GROUPS_MAX];
};

/* A call that waits for its answer. */
struct caller {
	int listener;
	uint64_t id; /* the kernel's, of the call */
	pid_t tid;   /* as seen from here */
	enum jail_call call;
	bool native;
	uint64_t args[6];
	int pidfd, socket; /* owned; -1: none */
	int domain, type;  /* of the socket */
	bool blocks;       /* the socket's calls wait */
	uint64_t done;     /* bytes of this call that were sent */
};

/* Opens the task and the socket that its first argument names. 0; -errno is what to answer. */
int caller_open(struct caller *c);
void caller_close(struct caller *c);
/* Nobody else can change its table of descriptors while it waits: it has one thread. That no other
 * process shares the table is for who asks to know. */
bool caller_is_alone(const struct caller *c);
/* It still waits, so what was read by its number was its own. */
bool caller_is_there(const struct caller *c);
/* A signal waits for it that it has not blocked. */
bool caller_has_signal(const struct caller *c);
/* Its memory. 0 or -EFAULT. */
int caller_read(const struct caller *c, uint64_t address, void *out, size_t n);
int caller_write(const struct caller *c, uint64_t address, const void *bytes, size_t n);
/* A copy of its descriptor, or -errno. */
int caller_take(const struct caller *c, int fd);
/* Its ids. 0 or -errno. */
int caller_ids(const struct caller *c, struct caller_ids *out);
/* This thread acts as the caller and again as itself. Returning cannot fail: it would end init. */
int caller_lend(const struct caller_ids *ids);
void caller_return(void);
/* To be called once, by the thread that will lend its ids. */
void caller_start(void);

/* What to connect or send to in place of what the caller named. */
struct socket_name {
	union {
		struct sockaddr any;
		uint8_t bytes[sizeof(struct sockaddr_storage)];
	} address;
	socklen_t n;
	int pin; /* the socket's file, open while the name is used; -1: none. Owned. */
};

/* Reads the address from the caller's memory and judges it. Unix sockets of outside are not there
 * (-ECONNREFUSED). 0; -errno is what to answer, and nothing is owned. */
int socket_name_take(const struct caller *c, uint64_t address, uint64_t n, struct socket_name *out);
void socket_name_close(struct socket_name *name);

/* Carries sendto, sendmsg or sendmmsg out, without waiting. What the call returns, or -errno. */
long socket_send(struct caller *c);

/* Answers at the listener from now on, in a thread. 0 or -errno. */
int sockets_start(int listener);

#endif
