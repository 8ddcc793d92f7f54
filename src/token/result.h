/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VETHGUARD_SRC_TOKEN_RESULT_H
#define VETHGUARD_SRC_TOKEN_RESULT_H

#include "token/cryptoki.h"

/* What a module's answer means, for people; borrowed until the next call. */
const char *result_text(ck_rv rv);

#endif
