/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secrets: tells the connection that is shaking hands what OpenSSL derives in the key schedule of
 * TLS 1.3 (RFC 8446 section 7.1). OpenSSL's own way to the traffic secrets, the key log, writes
 * each as text, which takes a tenth of a resumed handshake.
 */
#ifndef VETHGUARD_SRC_TLS_RECORD_SECRETS_H
#define VETHGUARD_SRC_TLS_RECORD_SECRETS_H

#include <openssl/core.h>

#include "vethguard/base/slice.h"

/* label: without "tls13 "; secret: what was derived. Both are borrowed. */
typedef void (*secrets_told)(void *context, struct slice label, struct slice secret);

/* Returns the provider's algorithms of key derivation, with the one of TLS 1.3 listened to, in
 * static memory. Only library.c calls this, once. */
const OSSL_ALGORITHM *secrets_listen(const OSSL_ALGORITHM *all);
/* From now on, tells what this thread derives; NULL: tells nothing more. */
void secrets_watch(secrets_told told, void *context);

#endif
