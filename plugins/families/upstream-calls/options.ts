// Schemas of options that the plugins for upstream servers and APIs share.
import { count, flag, positiveDuration, text } from '../../../core/internal.ts'
import { SIZE_PATTERN } from '../../../core/plugin.ts'

export const texts = (description: string) =>
  ({ type: 'array', items: { type: 'string', minLength: 1 }, description }) as const
/** The schema of a size above zero. */
export const size = (description: string) =>
  ({
    type: ['string', 'number'],
    pattern: `^(?=.*[1-9])${SIZE_PATTERN.slice(1)}`,
    exclusiveMinimum: 0,
    description,
  }) as const
export const closed = <const Properties extends object>(properties: Properties, description: string) =>
  ({ type: 'object', additionalProperties: false, properties, description }) as const
export const record = <const Value extends object>(value: Value, description: string) =>
  ({ type: 'object', additionalProperties: value, description }) as const

export const PREFIX = { type: 'string', pattern: '^[A-Za-z0-9_.-]{0,64}$' } as const

/** Changes to one tool. `names`: the keys of `arguments`, for the description. */
export const toolOverride = <const Output extends object>(output: Output, names: string) =>
  closed(
    {
      name: {
        type: 'string',
        pattern: '^[A-Za-z0-9_.-]{1,128}$',
        description: 'The complete name of the tool: no prefix is added.',
      },
      title: text('The title of the tool.'),
      description: text('The description of the tool.'),
      annotations: closed(
        {
          title: text('The title of the tool.'),
          readOnlyHint: flag('The tool changes nothing.'),
          destructiveHint: flag('The tool can delete or overwrite data.'),
          idempotentHint: flag('A repeated call has no further effect.'),
          openWorldHint: flag('The tool reaches external systems.'),
        },
        'Hints about the tool. They override its other hints.',
      ),
      access: text('The policy, scope or role that the tool requires.'),
      arguments: record(
        {
          ...closed(
            {
              value: { description: 'A fixed value. The argument is not listed.' },
              default: { description: 'The value of a missing argument, which becomes optional.' },
              description: text('The description of the argument.'),
              name: text('The name that callers use.'),
            },
            'Changes to an argument.',
          ),
          minProperties: 1,
        },
        `Changes to arguments, by ${names}.`,
      ),
      timeout: positiveDuration('Time limit of a call.'),
      concurrency: count('Maximum concurrent calls of the tool per process.'),
      output,
      task: { description: 'The key `task` of the tool, for the plugin `tasks`.' },
    },
    'Changes to a tool.',
  )
