/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys are made in memory and die with this process, except a root CA in a file (authority_file.c).
 * A long validity of certificates helps no attacker; it only keeps a sandbox that runs for months
 * from expiring. Each worker has an intermediate with path length 0, so what one worker could be
 * made to sign is worth nothing to another sandbox once it is gone.
 */
#include "keeper/authority.h"

#include <stdio.h>

#include "vethguard/base/hash.h"

#define VALID_DAYS 3650
#define NAME_BYTES 65 /* common names have at most 64 (RFC 5280, ub-common-name) */
#define MESSAGE_CA_BYTES (64 + 2 * CA_CERTIFICATE_MAX + CA_KEY_MAX)
#define MESSAGE_ROOT_BYTES (64 + MESSAGE_PEM_MAX)

static struct slice make_name(char name[NAME_BYTES], const char *kind)
{
	uint32_t number;
	int n;

	random_bytes(&number, sizeof(number));
	n = snprintf(name, NAME_BYTES, "vethguard %s CA %08x", kind, number);
	return slice_of(name, (size_t)n);
}

struct ca *authority_new(void)
{
	char name[NAME_BYTES];

	return ca_new_root(make_name(name, "sandbox"), VALID_DAYS);
}

struct ca *authority_intermediate(const struct ca *root)
{
	char name[NAME_BYTES];

	return ca_new_intermediate(root, make_name(name, "intermediate"), VALID_DAYS);
}

int authority_send(
        const struct ca *root, const struct ca *intermediate, struct ipc_peer *peer, uint64_t id)
{
	struct secret key, message;
	struct message_ca ca = {
	        .root = ca_certificate_der(root), .intermediate = ca_certificate_der(intermediate)};
	int rc = ca_key_der(intermediate, &key);

	if (rc < 0)
		return rc;
	ca.key = secret_slice(&key);
	rc = secret_alloc(&message, MESSAGE_CA_BYTES);
	if (rc == 0)
		rc = ipc_send_secret(peer, message.p,
		        message_ca_encode(message.p, message.cap, MESSAGE_CA, id, &ca));
	secret_free(&message);
	secret_free(&key);
	return rc;
}

int authority_send_root(const struct ca *root, struct ipc_peer *peer, uint64_t id)
{
	uint8_t message[MESSAGE_ROOT_BYTES];
	struct message_keeper_root answer;
	struct buf pem;
	int rc;

	buf_init(&pem, MESSAGE_PEM_MAX);
	rc = ca_pem_append(ca_certificate_der(root), &pem);
	if (rc == 0) {
		answer.root_pem = buf_slice(&pem);
		rc = ipc_send(peer, message,
		        message_keeper_root_encode(
		                message, sizeof(message), MESSAGE_KEEPER_ROOT, id, &answer),
		        NULL, 0);
	}
	buf_fini(&pem);
	return rc;
}
