/* SPDX-License-Identifier: Apache-2.0 */
/* authority: this keeper's root CA, which never leaves it, and what the root CA signs. */
#ifndef VETHGUARD_SRC_KEEPER_AUTHORITY_H
#define VETHGUARD_SRC_KEEPER_AUTHORITY_H

#include "vethguard/ipc/peer.h"
#include "vethguard/tls/ca.h"

/* Makes a new root "vethguard sandbox CA RANDOM". Returns NULL if there is no memory or no
 * randomness. */
struct ca *authority_new(void);
/* Loads the root CA from the file; an empty file is filled with a new one, which is on the disk on
 * return. fd stays the caller's. Returns NULL with *why, a text for people. */
struct ca *authority_open(int fd, const char **why);
/* Makes an intermediate "vethguard intermediate CA RANDOM". Returns NULL as above. */
struct ca *authority_intermediate(const struct ca *root);
/* Answers MESSAGE_CA_GET. Returns 0 or -errno. */
int authority_send(
        const struct ca *root, const struct ca *intermediate, struct ipc_peer *peer, uint64_t id);
/* Answers MESSAGE_KEEPER_SANDBOX with the root's certificate. Returns 0 or -errno. */
int authority_send_root(const struct ca *root, struct ipc_peer *peer, uint64_t id);

#endif
