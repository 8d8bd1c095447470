// The config's `tools` as JSON Schema: limits for all of them, and for those whose names fit a glob. For host-schema.ts.
import { closed, count, isolate, positiveDuration } from './schema-parts.ts'

export const tools = closed(
  {
    fetchTimeout: positiveDuration('For ctx.fetch.', { default: '30s' }),
    callTimeout: {
      anyOf: [{ const: 'off' }, positiveDuration('How long one call may take.')],
      default: 'off',
      description:
        "Limit for a whole call, except while it waits for its client. A tool's own timeout takes precedence.",
    },
    limits: {
      type: 'object',
      description:
        "Globs over names of tools ('heavy_*'), and limits of each tool that fits. The narrower of all holds.",
      additionalProperties: closed(
        {
          timeout: positiveDuration('How long one call can take, including its time in the queue.'),
          concurrency: count('How many calls run at a time in one process; more wait.'),
          isolate,
        },
        { title: 'LimitsOfTools', minProperties: 1, description: 'Limits of each of these tools.' },
      ),
      examples: [{ 'heavy_*': { timeout: '10s', concurrency: 2 } }],
    },
  },
  { title: 'ToolLimits', default: {}, description: 'Limits for every tool.' },
)
