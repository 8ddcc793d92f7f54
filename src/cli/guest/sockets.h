/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sockets: lets the sandbox reach only its own Unix sockets. A thread of init answers each call
 * that names a socket (guest/sockets.c). guest/caller.c handles the calling task,
 * guest/socket_name.c finds and judges the socket, guest/socket_send.c copies messages.
 */
#ifndef VETHGUARD_SRC_CLI_GUEST_SOCKETS_H
#define VETHGUARD_SRC_CLI_GUEST_SOCKETS_H

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "vethguard/jail/guest.h"

#define CALLER_GROUPS_MAX 256 /* further groups are not lent */

struct caller_ids {
	uid_t uid;
	gid_t gid;
	int group_count;
	gid_t groups[CALLER_GROUPS_MAX];
};

/* A call that waits for its answer. */
struct caller {
	int listener;
	uint64_t id; /* the kernel's id of the call */
	pid_t tid;   /* in our pid namespace */
	enum jail_call call;
	bool native;
	uint64_t args[6];
	int pidfd, socket; /* owned; -1: none */
	int domain, type;  /* of the socket */
	bool blocks;       /* calls on the socket block */
	uint64_t done;     /* bytes of this call that were sent already */
};

/* Opens the task, and the socket in its first argument. Returns 0, or the -errno to answer with. */
int caller_open(struct caller *c);
void caller_close(struct caller *c);
/* True if no other thread can change the caller's table of descriptors while it waits: it has one
 * thread. The function's caller has to know that no other process shares the table. */
bool caller_is_alone(const struct caller *c);
/* True if the caller still waits, so that what was read through its number was its own. */
bool caller_is_there(const struct caller *c);
/* True if a signal is pending that the caller has not blocked. */
bool caller_has_signal(const struct caller *c);
/* Access the caller's memory. Return 0 or -EFAULT. */
int caller_read(const struct caller *c, uint64_t address, void *out, size_t n);
int caller_write(const struct caller *c, uint64_t address, const void *bytes, size_t n);
/* A copy of the caller's descriptor, or -errno. */
int caller_take(const struct caller *c, int fd);
/* Gets the caller's ids. Returns 0 or -errno. */
int caller_ids(const struct caller *c, struct caller_ids *out);
/* Let this thread act with the caller's ids, and with its own again. Returning cannot fail: a
 * failure would end init. */
int caller_lend(const struct caller_ids *ids);
void caller_return(void);
/* Call this once, in the thread that will lend ids. */
void caller_start(void);

/* The address to connect or send to in place of the caller's. */
struct socket_name {
	union {
		struct sockaddr any;
		uint8_t bytes[sizeof(struct sockaddr_storage)];
	} address;
	socklen_t n;
	int pin; /* the socket's file, kept open while the name is used; -1: none. Owned. */
};

/* Reads the address from the caller's memory and judges it. Unix sockets outside do not exist for
 * it (-ECONNREFUSED). Returns 0; or the -errno to answer with, and nothing is owned. */
int socket_name_take(const struct caller *c, uint64_t address, uint64_t n, struct socket_name *out);
void socket_name_close(struct socket_name *name);

/* Carries out sendto, sendmsg or sendmmsg without waiting. Returns the call's result or -errno. */
long socket_send(struct caller *c);

/* Starts a thread that answers at the listener. Returns 0 or -errno. */
int sockets_start(int listener);

#endif
