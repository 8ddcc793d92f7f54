/* SPDX-License-Identifier: Apache-2.0 */
/* authority: the root CA of this keeper, which never leaves it, and what it signs. */
#ifndef VETHGUARD_SRC_KEEPER_AUTHORITY_H
#define VETHGUARD_SRC_KEEPER_AUTHORITY_H

#include "vethguard/ipc/peer.h"
#include "vethguard/tls/ca.h"

/* A new root "vethguard sandbox CA RANDOM". NULL: no memory or no randomness. */
struct ca *authority_new(void);
/* The root that the file holds; an empty file is filled with a new one and is on the disk when this
 * returns. fd stays the caller's. NULL with why, a text for people. */
struct ca *authority_open(int fd, const char **why);
/* An intermediate "vethguard intermediate CA RANDOM". NULL as above. */
struct ca *authority_intermediate(const struct ca *root);
/* Answers MESSAGE_CA_GET. 0 or -errno. */
int authority_send(
        const struct ca *root, const struct ca *intermediate, struct ipc_peer *peer, uint64_t id);
/* Answers MESSAGE_KEEPER_SANDBOX with the root's certificate. 0 or -errno. */
int authority_send_root(const struct ca *root, struct ipc_peer *peer, uint64_t id);

#endif
