/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of formats. A home is a domain of the service that gives out such keys: a client that
 * sends the key there does what the key is for. How a format looks is in patterns.c and shapes.c.
 */
#include "vethguard/dlp/formats.h"
#include "dlp/format_ids.h"

struct format {
	const char *name, *title;
	const char *homes; /* domains, a space between */
	bool common;
};

static const struct format formats[] = {
        [DLP_PRIVATE_KEY] = {"private-key", "a private key", "", false},
        [DLP_PUTTY_KEY] = {"putty-key", "a PuTTY private key", "", false},
        [DLP_AGE_KEY] = {"age-key", "an age private key", "", false},
        [DLP_JWT] = {"jwt", "a JSON web token",
                "githubusercontent.com docker.com docker.io googleapis.com microsoftonline.com",
                true},
        [DLP_HIGH_ENTROPY_HOST] = {"high-entropy-host", "encoded data in the name of a host", "",
                false},
        [DLP_HIGH_ENTROPY_PATH] = {"high-entropy-path", "encoded data in the path",
                "google.com googleapis.com", false},
        [DLP_HIGH_ENTROPY_QUERY] = {"high-entropy-query", "encoded data in the query",
                "google.com googleapis.com", false},
        [DLP_ADAFRUIT_KEY] = {"adafruit-key", "an Adafruit IO key", "adafruit.com", false},
        [DLP_ALIBABA_ACCESS_KEY] = {"alibaba-access-key", "an Alibaba Cloud access key id",
                "aliyuncs.com", false},
        [DLP_ANTHROPIC_KEY] = {"anthropic-key", "an Anthropic key",
                "anthropic.com claude.ai claude.com", false},
        [DLP_ATLASSIAN_TOKEN] = {"atlassian-token", "an Atlassian token",
                "atlassian.com atlassian.net bitbucket.org", false},
        [DLP_AWS_ACCESS_KEY] = {"aws-access-key", "an AWS access key id",
                "amazonaws.com amazonaws.com.cn aws.amazon.com", false},
        [DLP_AWS_BEDROCK_KEY] = {"aws-bedrock-key", "an Amazon Bedrock key", "amazonaws.com",
                false},
        [DLP_AWS_SECRET_KEY] = {"aws-secret-key", "an AWS secret access key", "", false},
        [DLP_AZURE_CLIENT_SECRET] = {"azure-client-secret", "an Azure client secret",
                "microsoftonline.com", false},
        [DLP_AZURE_DEVOPS_TOKEN] = {"azure-devops-token", "an Azure DevOps token",
                "azure.com visualstudio.com", false},
        [DLP_AZURE_SHARED_KEY] = {"azure-shared-key", "an Azure shared access key", "", false},
        [DLP_BREVO_KEY] = {"brevo-key", "a Brevo key", "brevo.com sendinblue.com", false},
        [DLP_BUILDKITE_TOKEN] = {"buildkite-token", "a Buildkite token", "buildkite.com", false},
        [DLP_CIRCLECI_TOKEN] = {"circleci-token", "a CircleCI token", "circleci.com", false},
        [DLP_CLICKUP_TOKEN] = {"clickup-token", "a ClickUp token", "clickup.com", false},
        [DLP_CLOJARS_TOKEN] = {"clojars-token", "a Clojars token", "clojars.org", false},
        [DLP_CLOUDFLARE_KEY] = {"cloudflare-key", "a Cloudflare origin CA key", "cloudflare.com",
                false},
        [DLP_CONTENTFUL_TOKEN] = {"contentful-token", "a Contentful token", "contentful.com",
                false},
        [DLP_DATABRICKS_TOKEN] = {"databricks-token", "a Databricks token",
                "databricks.com azuredatabricks.net", false},
        [DLP_DIGITALOCEAN_TOKEN] = {"digitalocean-token", "a DigitalOcean token",
                "digitalocean.com", false},
        [DLP_DISCORD_WEBHOOK] = {"discord-webhook", "a Discord webhook",
                "discord.com discordapp.com", false},
        [DLP_DOCKER_HUB_TOKEN] = {"docker-hub-token", "a Docker Hub token", "docker.com docker.io",
                false},
        [DLP_DOCKER_SWARM_TOKEN] = {"docker-swarm-token", "a Docker Swarm join token", "", false},
        [DLP_DOPPLER_TOKEN] = {"doppler-token", "a Doppler token", "doppler.com", false},
        [DLP_DROPBOX_TOKEN] = {"dropbox-token", "a Dropbox token", "dropboxapi.com dropbox.com",
                false},
        [DLP_DUFFEL_TOKEN] = {"duffel-token", "a Duffel token", "duffel.com", false},
        [DLP_DYNATRACE_TOKEN] = {"dynatrace-token", "a Dynatrace token", "dynatrace.com", false},
        [DLP_EASYPOST_KEY] = {"easypost-key", "an EasyPost key", "easypost.com", false},
        [DLP_ELEVENLABS_KEY] = {"elevenlabs-key", "an ElevenLabs key", "elevenlabs.io", false},
        [DLP_FIGMA_TOKEN] = {"figma-token", "a Figma token", "figma.com", false},
        [DLP_FLUTTERWAVE_KEY] = {"flutterwave-key", "a Flutterwave key", "flutterwave.com", false},
        [DLP_FLY_TOKEN] = {"fly-token", "a Fly.io token", "fly.io", false},
        [DLP_GENERIC_SK_KEY] = {"generic-sk-key", "a key that begins with sk-", "", true},
        [DLP_GITHUB_FINE_GRAINED_TOKEN] = {"github-fine-grained-token",
                "a fine-grained GitHub token", "github.com githubusercontent.com ghcr.io", false},
        [DLP_GITHUB_TOKEN] = {"github-token", "a GitHub token",
                "github.com githubusercontent.com ghcr.io githubcopilot.com", false},
        [DLP_GITLAB_TOKEN] = {"gitlab-token", "a GitLab token", "gitlab.com", false},
        [DLP_GOOGLE_API_KEY] = {"google-api-key", "a Google API key", "googleapis.com google.com",
                false},
        [DLP_GOOGLE_CLIENT_SECRET] = {"google-client-secret", "a Google OAuth client secret",
                "googleapis.com google.com", false},
        [DLP_GOOGLE_OAUTH_TOKEN] = {"google-oauth-token", "a Google OAuth token",
                "googleapis.com google.com", false},
        [DLP_GRAFANA_TOKEN] = {"grafana-token", "a Grafana token", "grafana.com grafana.net",
                false},
        [DLP_GROQ_KEY] = {"groq-key", "a Groq key", "groq.com", false},
        [DLP_HEROKU_KEY] = {"heroku-key", "a Heroku key", "heroku.com", false},
        [DLP_HUBSPOT_TOKEN] = {"hubspot-token", "a HubSpot token", "hubapi.com hubspot.com", false},
        [DLP_HUGGING_FACE_TOKEN] = {"hugging-face-token", "a Hugging Face token",
                "huggingface.co hf.co", false},
        [DLP_INFRACOST_KEY] = {"infracost-key", "an Infracost key", "infracost.io", false},
        [DLP_JFROG_TOKEN] = {"jfrog-token", "a JFrog token", "jfrog.io", false},
        [DLP_JINA_KEY] = {"jina-key", "a Jina key", "jina.ai", false},
        [DLP_LANGSMITH_KEY] = {"langsmith-key", "a LangSmith key", "langchain.com", false},
        [DLP_LINEAR_KEY] = {"linear-key", "a Linear key", "linear.app", false},
        [DLP_MAILCHIMP_KEY] = {"mailchimp-key", "a Mailchimp key", "mailchimp.com", false},
        [DLP_MAILGUN_KEY] = {"mailgun-key", "a Mailgun key", "mailgun.net mailgun.com", false},
        [DLP_MAPBOX_TOKEN] = {"mapbox-token", "a secret Mapbox token", "mapbox.com", false},
        [DLP_NETLIFY_TOKEN] = {"netlify-token", "a Netlify token", "netlify.com", false},
        [DLP_NEW_RELIC_KEY] = {"new-relic-key", "a New Relic key", "newrelic.com nr-data.net",
                false},
        [DLP_NOTION_TOKEN] = {"notion-token", "a Notion token", "notion.com notion.so", false},
        [DLP_NPM_TOKEN] = {"npm-token", "an npm token", "npmjs.org npmjs.com npm.pkg.github.com",
                false},
        [DLP_NUGET_KEY] = {"nuget-key", "a NuGet key", "nuget.org", false},
        [DLP_NVIDIA_KEY] = {"nvidia-key", "an NVIDIA key", "nvidia.com", false},
        [DLP_ONEPASSWORD_TOKEN] = {"onepassword-token", "a 1Password token", "1password.com",
                false},
        [DLP_OPENAI_KEY] = {"openai-key", "an OpenAI key", "openai.com", false},
        [DLP_OPENROUTER_KEY] = {"openrouter-key", "an OpenRouter key", "openrouter.ai", false},
        [DLP_PERPLEXITY_KEY] = {"perplexity-key", "a Perplexity key", "perplexity.ai", false},
        [DLP_PINECONE_KEY] = {"pinecone-key", "a Pinecone key", "pinecone.io", false},
        [DLP_PLAID_TOKEN] = {"plaid-token", "a Plaid token", "plaid.com", false},
        [DLP_PLANETSCALE_TOKEN] = {"planetscale-token", "a PlanetScale token",
                "planetscale.com psdb.cloud", false},
        [DLP_POSTMAN_KEY] = {"postman-key", "a Postman key", "postman.com getpostman.com", false},
        [DLP_PREFECT_TOKEN] = {"prefect-token", "a Prefect token", "prefect.cloud", false},
        [DLP_PULUMI_TOKEN] = {"pulumi-token", "a Pulumi token", "pulumi.com", false},
        [DLP_PYPI_TOKEN] = {"pypi-token", "a PyPI token", "pypi.org", false},
        [DLP_RAZORPAY_KEY] = {"razorpay-key", "a Razorpay key", "razorpay.com", false},
        [DLP_README_KEY] = {"readme-key", "a ReadMe key", "readme.io readme.com", false},
        [DLP_RENDER_KEY] = {"render-key", "a Render key", "render.com", false},
        [DLP_REPLICATE_TOKEN] = {"replicate-token", "a Replicate token", "replicate.com", false},
        [DLP_RUBYGEMS_KEY] = {"rubygems-key", "a RubyGems key", "rubygems.org", false},
        [DLP_SENDGRID_KEY] = {"sendgrid-key", "a SendGrid key", "sendgrid.com", false},
        [DLP_SENTRY_TOKEN] = {"sentry-token", "a Sentry token", "sentry.io", false},
        [DLP_SHOPIFY_TOKEN] = {"shopify-token", "a Shopify token", "myshopify.com shopify.com",
                false},
        [DLP_SLACK_TOKEN] = {"slack-token", "a Slack token", "slack.com", false},
        [DLP_SLACK_WEBHOOK] = {"slack-webhook", "a Slack webhook", "slack.com", false},
        [DLP_SONAR_TOKEN] = {"sonar-token", "a SonarQube token", "sonarcloud.io", false},
        [DLP_SOURCEGRAPH_TOKEN] = {"sourcegraph-token", "a Sourcegraph token", "sourcegraph.com",
                false},
        [DLP_SQUARE_TOKEN] = {"square-token", "a Square token", "squareup.com", false},
        [DLP_STRIPE_KEY] = {"stripe-key", "a Stripe key", "stripe.com", false},
        [DLP_SUPABASE_KEY] = {"supabase-key", "a Supabase key", "supabase.com supabase.co", false},
        [DLP_TAILSCALE_KEY] = {"tailscale-key", "a Tailscale key", "tailscale.com", false},
        [DLP_TELEGRAM_TOKEN] = {"telegram-token", "a Telegram bot token", "telegram.org", false},
        [DLP_TENCENT_SECRET_ID] = {"tencent-secret-id", "a Tencent Cloud secret id",
                "tencentcloudapi.com myqcloud.com", false},
        [DLP_TERRAFORM_TOKEN] = {"terraform-token", "a Terraform Cloud token", "terraform.io",
                false},
        [DLP_TOGETHER_KEY] = {"together-key", "a Together AI key", "together.xyz together.ai",
                false},
        [DLP_TYPEFORM_TOKEN] = {"typeform-token", "a Typeform token", "typeform.com", false},
        [DLP_VAULT_TOKEN] = {"vault-token", "a HashiCorp Vault token", "", false},
        [DLP_VERCEL_TOKEN] = {"vercel-token", "a Vercel token", "vercel.com vercel-storage.com",
                false},
        [DLP_XAI_KEY] = {"xai-key", "an xAI key", "x.ai", false},
};
_Static_assert(sizeof(formats) / sizeof(formats[0]) == DLP_FORMAT_COUNT, "a row for each format");
_Static_assert(DLP_FORMAT_COUNT <= DLP_FORMATS_MAX, "a bit for each format");

uint32_t dlp_format_count(void)
{
	return DLP_FORMAT_COUNT;
}

const char *dlp_format_name(uint32_t format)
{
	return format < DLP_FORMAT_COUNT ? formats[format].name : "unknown";
}

const char *dlp_format_title(uint32_t format)
{
	return format < DLP_FORMAT_COUNT ? formats[format].title : "unknown";
}

uint32_t dlp_format_find(struct slice name)
{
	for (uint32_t i = 0; i < DLP_FORMAT_COUNT; i++)
		if (slice_equals(name, slice_from_string(formats[i].name)))
			return i;
	return DLP_NONE;
}

/* True if host is the domain, or a name below it. */
static bool is_below(struct slice host, struct slice domain)
{
	return slice_ends_with(host, domain) &&
	       (host.n == domain.n || host.p[host.n - domain.n - 1] == '.');
}

bool dlp_format_is_at_home(uint32_t format, struct slice host)
{
	struct slice rest;

	if (format >= DLP_FORMAT_COUNT)
		return false;
	rest = slice_from_string(formats[format].homes);
	while (rest.n) {
		ptrdiff_t space = slice_find_byte(rest, ' ');
		size_t n = space < 0 ? rest.n : (size_t)space;

		if (is_below(host, slice_of(rest.p, n)))
			return true;
		n += space >= 0;
		rest = slice_of(rest.p + n, rest.n - n);
	}
	return false;
}

bool dlp_format_is_common(uint32_t format)
{
	return format < DLP_FORMAT_COUNT && formats[format].common;
}

const char *dlp_mode_name(enum dlp_mode mode)
{
	static const char *const names[] = {"off", "alert", "block"};
	_Static_assert(sizeof(names) / sizeof(names[0]) == DLP_MODE_COUNT, "a name per mode");

	return (unsigned)mode < DLP_MODE_COUNT ? names[mode] : "unknown";
}
