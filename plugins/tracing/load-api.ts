// The API of OpenTelemetry, which whoever starts an SDK has installed: mcp-host itself brings none.
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { StartError } from '../../core/index.ts'

export type OpenTelemetry = typeof import('@opentelemetry/api')

const NAME = '@opentelemetry/api'

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'MODULE_NOT_FOUND' && error.message.includes(NAME)

/** The copy that the config's folder finds, else the one beside this file. Throws a StartError where there is none. */
export function loadApi(directory: string, here: string = import.meta.url): OpenTelemetry {
  // The SDK is started with the project's copy, and an API does not take spans of an SDK that is older than it is.
  for (const from of [join(directory, 'package.json'), here]) {
    try {
      return createRequire(from)(NAME)
    } catch (error) {
      if (!isMissing(error)) throw error
    }
  }
  throw new StartError(
    `plugins.tracing: ${NAME} is not installed; install it beside the config: npm i --save-prod ${NAME}`,
    {
      exitCode: 2,
    },
  )
}
