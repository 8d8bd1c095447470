// The package manager that runs this, by what it says of itself in the environment; what is printed are its commands.

export interface PackageCommands {
  readonly name: 'npm' | 'pnpm' | 'yarn' | 'bun'
  readonly install: string
  readonly test: string
  /** In front of the name of any other script. */
  readonly run: string
  /** In front of a program of node_modules. */
  readonly execute: string
}

const MANAGERS: ReadonlyMap<string, PackageCommands> = new Map(
  [
    { name: 'npm', install: 'npm install', test: 'npm test', run: 'npm run', execute: 'npx' },
    { name: 'pnpm', install: 'pnpm install', test: 'pnpm test', run: 'pnpm run', execute: 'pnpm exec' },
    { name: 'yarn', install: 'yarn install', test: 'yarn test', run: 'yarn run', execute: 'yarn' },
    { name: 'bun', install: 'bun install', test: 'bun run test', run: 'bun run', execute: 'bunx' },
  ].map(manager => [manager.name, manager as PackageCommands]),
)

/** `agent` is `npm_config_user_agent`, such as `pnpm/10.1.0 npm/? node/v24.0.0 linux x64`. Default: npm. */
export function packageCommandsOf(agent: string | undefined): PackageCommands {
  const found = MANAGERS.get(agent?.split('/', 1)[0] ?? '') ?? MANAGERS.get('npm')
  if (!found) throw new Error('npm is not among the package managers')
  return found
}
