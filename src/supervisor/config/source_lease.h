/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_lease: the leases of values that a service has made for a sandbox (Vault's dynamic
 * secrets). When nobody uses a value any more, its lease is given back: the service is asked to end
 * the lease, again and again until it has done so or the lease has ended by itself. The daemon
 * keeps a file for each lease, so that the next daemon can give back the leases of one that was
 * killed. The file has no secret: it has the lease's id, and the names of the files with which the
 * service was asked.
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
	int directory;           /* directory of the files, owned; -1: no files are kept */
	const char *config_path; /* borrowed: the configuration with resolvers, hosts and CAs for
	                            giving back; NULL: none */
	struct memory_trusted *trusted; /* borrowed */
	int mounts;                     /* borrowed; see struct sources */
	struct source_lease *all;       /* list of all leases */
	uint64_t last_number;
	bool hurried;
	struct loop_timer hurry;
	/* Called after source_leases_hurry() when nothing is left to give back, or the time for it
	 * is over. */
	void (*on_idle)(struct source_leases *book);
};

void source_leases_init(struct source_leases *book, struct loop *loop);
/* Reads the files of daemons that are gone, and gives their leases back. */
void source_leases_recover(struct source_leases *book);
/* Call this when the supervisor ends: on_idle is called once, later. A lease that is not given back
 * by then is left to the next daemon, or ends by itself. */
void source_leases_hurry(struct source_leases *book);
bool source_leases_are_idle(const struct source_leases *book);
/* Forgets all leases; the files stay. */
void source_leases_fini(struct source_leases *book);

/* Makes a lease of the credential, whose service was asked with the rights of identity. Both are
 * copied. Returns NULL if there is no memory, after a warning. */
struct source_lease *source_lease_new(struct source_leases *book,
        const struct policy_credential *credential, const struct identity *identity, const char *id,
        uint32_t lasts_s, bool renewable);
/* NULL is allowed in all of these. */
const char *source_lease_id(const struct source_lease *lease);
uint32_t source_lease_lasts_s(const struct source_lease *lease); /* as the service first told */
bool source_lease_is_renewable(const struct source_lease *lease);
void source_lease_renewed(struct source_lease *lease, uint32_t lasts_s, bool renewable);
/* Gives the lease back after that time. The caller must not use it any more. */
void source_lease_release(struct source_lease *lease, int64_t delay_ms);

#endif
