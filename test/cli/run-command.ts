// Calls commands as functions, with a context that keeps their output.
import { PassThrough } from 'node:stream'
import { type CommandContext, type CommandEnvironment, createContext } from '../../cli/context.ts'

export interface TestContext extends CommandContext {
  /** What stdout, or stderr, has so far. */
  readonly text: Readonly<Record<'stdout' | 'stderr', string>>
}

export function testContext(environment: Partial<CommandEnvironment> = {}): TestContext {
  const text = { stdout: '', stderr: '' }
  const output = (name: keyof typeof text) =>
    new PassThrough().setEncoding('utf8').on('data', (chunk: string) => {
      text[name] += chunk
    })
  const given = {
    stdin: new PassThrough(),
    stdout: output('stdout'),
    stderr: output('stderr'),
    env: {},
    cwd: process.cwd(),
  }
  return { ...createContext({ ...given, ...environment }, () => undefined), text }
}

/** What `work` prints to stdout, without the last line break. */
export async function printedBy(
  work: (context: TestContext) => Promise<unknown>,
  environment?: Partial<CommandEnvironment>,
): Promise<string> {
  const context = testContext(environment)
  await work(context)
  return context.text.stdout.replace(/\n$/, '')
}
