/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deferred: DELs that came while the daemon was away. If such a DEL failed, the plugins before this
 * one would not tidy up either (libcni stops at the first error), and engines that do not try again
 * would leave links, addresses and namespaces behind. So DEL is noted in a file beside the daemon's
 * socket, and the next ADD, DEL or GC that reaches the daemon does it. Until then the guard stands,
 * and nothing passes it.
 */
#ifndef VETHGUARD_SRC_CNI_DEFERRED_H
#define VETHGUARD_SRC_CNI_DEFERRED_H

#include "cni/request.h"

#define CNI_DEFERRED_FOLDER "cni-deleted" /* in the directory of the socket; mode 0700 */
#define CNI_DEFERRED_MAX 4096             /* files looked at in one run */
#define CNI_DEFERRED_BYTES_MAX 2048       /* of one file */

/* Notes the request's container. True also if there is no directory: then no daemon has run since
 * the machine started, and nothing is guarded. False: fault is as it was. */
bool cni_deferred_note(const struct cni_request *request);
/* Carries out the noted DELs that can be done now. */
void cni_deferred_do(const struct cni_request *request);

#endif
