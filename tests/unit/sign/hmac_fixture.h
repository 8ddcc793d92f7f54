/* SPDX-License-Identifier: Apache-2.0 */
/* An HMAC for the tests of what signs. Include it behind cmocka.h. */
#ifndef VETHGUARD_TESTS_UNIT_SIGN_HMAC_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_SIGN_HMAC_FIXTURE_H

#include "vethguard/sign/hmac.h"

static struct hmac hmac;

static int setup(void **state)
{
	(void)state;
	return hmac_init(&hmac);
}

static int teardown(void **state)
{
	(void)state;
	hmac_fini(&hmac);
	return 0;
}

#endif
