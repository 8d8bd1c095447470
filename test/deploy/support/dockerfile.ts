// Parses a Dockerfile into stages of steps, for tests that execute it without Docker.
import { type Arg, type Copy, DockerfileParser, type Env, type From } from 'dockerfile-ast'

export type Step =
  | {
      readonly what: 'copy'
      readonly from: string | undefined
      readonly sources: readonly string[]
      readonly to: string
    }
  | { readonly what: 'run'; readonly command: string }

export interface Stage {
  /** As it is called; `last` without a name. */
  name: string
  base: string
  readonly steps: Step[]
  readonly env: Record<string, string>
  /** Absolute. */
  workdir: string
  /** As it is written. */
  user: string | undefined
  /** Of exec form, as every command here is to be: one of shell form throws. */
  command: readonly string[]
  health: readonly string[]
}

function wordsOf(text: string): readonly string[] {
  if (!text.startsWith('[')) throw new Error(`not of exec form, so a shell would be between: ${text}`)
  return (JSON.parse(text) as unknown[]).map(String)
}

const begin = (name: string, base: string): Stage => ({
  name,
  base,
  steps: [],
  env: {},
  workdir: '/',
  user: undefined,
  command: [],
  health: [],
})

function copyStep(copy: Copy): Step {
  const words = (copy.getArgumentsContent() ?? '').split(/\s+/)
  const from = copy.getFlags().find(flag => flag.getName() === 'from')
  return { what: 'copy', from: from?.getValue() ?? undefined, sources: words.slice(0, -1), to: words.at(-1) ?? '' }
}

/** Throws at an instruction that it does not know how to execute, so that none is passed over. */
export function readDockerfile(text: string): readonly Stage[] {
  const stages: Stage[] = []
  const args = new Map<string, string>()
  const filled = (value: string) => value.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => args.get(name) ?? '')
  for (const instruction of DockerfileParser.parse(text).getInstructions()) {
    const content = instruction.getArgumentsContent() ?? ''
    const keyword = instruction.getKeyword()
    if (keyword === 'ARG') {
      const property = (instruction as Arg).getProperty()
      args.set(property?.getName() ?? '', property?.getValue() ?? '')
      continue
    }
    if (keyword === 'FROM') {
      const from = instruction as From
      stages.push(begin(from.getBuildStage() ?? 'last', filled(from.getImage() ?? '')))
      continue
    }
    const stage = stages.at(-1)
    if (!stage) throw new Error(`${keyword} before FROM`)
    if (keyword === 'WORKDIR') stage.workdir = content
    else if (keyword === 'ENV')
      for (const property of (instruction as Env).getProperties())
        stage.env[property.getName()] = property.getValue() ?? ''
    else if (keyword === 'COPY') stage.steps.push(copyStep(instruction as Copy))
    else if (keyword === 'RUN') stage.steps.push({ what: 'run', command: content })
    else if (keyword === 'USER') stage.user = content
    else if (keyword === 'CMD') stage.command = wordsOf(content)
    else if (keyword === 'HEALTHCHECK') stage.health = wordsOf(content.replace(/^CMD /, ''))
    else if (keyword !== 'EXPOSE') throw new Error(`this test cannot execute ${keyword}`)
  }
  return stages
}
