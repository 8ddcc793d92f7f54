/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_lease: what services count the values by that they have made for a sandbox (Vault's
 * dynamic secrets). A lease is given back when nobody uses its value any more: the service is asked
 * to end it, again and again until it has, or the lease has ended by itself. The daemon keeps a
 * file for each, so that the next daemon gives back what a killed one could not. It holds no
 * secret: the lease's id, and by which files the service was asked.
 */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONFIG_SOURCE_LEASE_H
#define VETHGUARD_SRC_SUPERVISOR_CONFIG_SOURCE_LEASE_H

#include "supervisor/os/identity.h"
#include "supervisor/os/memfd.h"
#include "vethguard/loop/loop.h"
#include "vethguard/policy/policy.h"

struct source_lease;

/* All leases of a supervisor. */
struct source_leases {
	struct loop *loop;
	int directory; /* of the files, owned; -1: none are kept */
	const char
	        *config_path; /* borrowed: resolvers, hosts and CAs for giving back; NULL: none */
	struct memory_trusted *trusted; /* borrowed */
	int mounts;                     /* borrowed; see struct sources */
	struct source_lease *all;       /* list */
	uint64_t last_number;
	bool hurried;
	struct loop_timer hurry;
	/* Hurried, and nothing is left to give back, or its time is over. */
	void (*on_idle)(struct source_leases *book);
};

void source_leases_init(struct source_leases *book, struct loop *loop);
/* Reads the files of daemons that are gone, and gives these leases back. */
void source_leases_recover(struct source_leases *book);
/* The supervisor ends: on_idle is called once, later. What is not given back by then is left to the
 * next daemon, or to its end. */
void source_leases_hurry(struct source_leases *book);
bool source_leases_are_idle(const struct source_leases *book);
/* Forgets all; the files stay. */
void source_leases_fini(struct source_leases *book);

/* A lease of the credential, whose service was asked with the rights of identity. Both are copied.
 * Returns NULL if there is no memory, after a warning. */
struct source_lease *source_lease_new(struct source_leases *book,
        const struct policy_credential *credential, const struct identity *identity, const char *id,
        uint32_t lasts_s, bool renewable);
/* NULL is allowed in all of these. */
const char *source_lease_id(const struct source_lease *lease);
uint32_t source_lease_lasts_s(const struct source_lease *lease); /* as first told */
bool source_lease_is_renewable(const struct source_lease *lease);
void source_lease_renewed(struct source_lease *lease, uint32_t lasts_s, bool renewable);
/* Gives it back after so long. The caller forgets it. */
void source_lease_release(struct source_lease *lease, int64_t delay_ms);

#endif
