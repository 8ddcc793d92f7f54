/* SPDX-License-Identifier: Apache-2.0 */
/* source_trial: a trial signature by the key in a token that belongs to a certificate. */
#ifndef VETHGUARD_SRC_KEEPER_SOURCE_TRIAL_H
#define VETHGUARD_SRC_KEEPER_SOURCE_TRIAL_H

#include "keeper/sources.h"

/* For an operator who has fetched this certificate: prepares source->trial. Returns false if there
 * is no memory. */
bool source_trial_prepare(struct source *source, struct slice pem);
/* Lets the key sign, and compares. The operator is answered (source_proceed()) when the token has
 * answered, perhaps from within. mark and ttl_s are for that answer. */
void source_trial_begin(struct source *source, struct slice mark, uint32_t ttl_s);
/* The source or the operator's operation ends, or another trial begins: the result of the trial is
 * not wanted. */
void source_trial_cancel(struct source *source);

#endif
