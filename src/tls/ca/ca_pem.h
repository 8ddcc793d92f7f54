/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about an operator's papers share: PEM blocks and refusals. */
#ifndef VETHGUARD_SRC_TLS_CA_CA_PEM_H
#define VETHGUARD_SRC_TLS_CA_CA_PEM_H

#include <openssl/x509v3.h>

#include "vethguard/tls/ca_papers.h"

struct ca_pem_block {
	struct slice label; /* "CERTIFICATE", ... */
	size_t n;           /* bytes decoded; 0: malformed, or no room */
};

/* ca_papers.c: takes the next block off *pem and decodes it into out. Returns 0; -ENOENT: there is
 * none; -EBADMSG: it has no end. */
int ca_pem_next(struct slice *pem, struct ca_pem_block *block, uint8_t *out, size_t cap);
/* Writes the sentence. */
void ca_refuse(char why[CA_WHY_MAX], const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
