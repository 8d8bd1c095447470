// The set-up of tasks: what the extension adds, and for each store its worker. Loaded where the plugin is on.
import {
  type Call,
  type FilledOptions,
  HostError,
  type McpRoute,
  type PluginHost,
  type Services,
  StartError,
  type ToolDefinition,
} from '../../core/index.ts'
import { type TaskStore, transportOf } from '../../core/transport.ts'
import { offerFigures } from './figures.ts'
import { Followers } from './followers.ts'
import { settingsOf, TASKS_ID } from './settings.ts'
import { concurrencyOf, Tasks } from './tasks.ts'
import { queueOf } from './work.ts'
import { TaskWorker } from './worker.ts'

/** The tasks of one store. */
interface Service {
  readonly tasks: Tasks
  readonly followers: Followers
  readonly worker: TaskWorker
}

/** What a store that is of one process alone cannot do. */
function checkStore({ at, processes, purpose, report, log }: PluginHost, store: TaskStore, role: string) {
  if (store.shared) return
  const fix = 'add cluster-redis, task-store-redis or store-sqlite'
  if (role !== 'both') {
    const what = `tasks are kept in this process alone, so nothing is left for another that a ${role} works with`
    report(new StartError(`${what}; ${fix}, or take out role`, { at: [...at, 'role'] }))
  } else if (processes > 1) {
    report(new StartError(`tasks are kept in one process; ${fix}, or start without --workers`, { at }))
  } else if (purpose === 'serve') {
    log.warn({ fix }, 'tasks are kept in this process alone: a restart loses them')
  }
}

/** A tool whose thread bounds what it does must not do part of it outside. */
function checkTools({ at, report }: PluginHost, tools: readonly ToolDefinition[]) {
  for (const { name, isolate, task } of tools) {
    if (isolate === undefined || typeof task !== 'object' || !task.before) continue
    const what = `the tool "${name}" has both \`isolate\` and \`task.before\`, which runs in no thread; take out one`
    report(new StartError(what, { at }))
  }
}

const tasksOf = (services: Services, route: McpRoute): readonly ToolDefinition[] =>
  services
    .itemsOf(route)
    .flatMap(({ kind, definition }) => (kind === 'tools' ? [definition as ToolDefinition] : []))
    .filter(({ task }) => task !== undefined)

export function setUpTasks(host: PluginHost, options: FilledOptions['tasks']): void {
  const settings = settingsOf(options, host)
  const ours = new WeakSet<Call>()
  const byRoute = new Map<string, Service>()
  const services = new Set<Service>()
  const ended = offerFigures(host, () => [...services].flatMap(({ worker }) => worker.depths))

  const serviceOf = (call: Call): Service => {
    const service = byRoute.get(call.offer.route.path)
    if (!service) throw new HostError('unavailable', { detail: 'the server is starting' })
    return service
  }
  const { tasks, followers } = {
    tasks: (call: Call) => serviceOf(call).tasks,
    followers: (call: Call) => serviceOf(call).followers,
  }
  const extension = host.extension(TASKS_ID, {
    methods: {
      'tasks/get': call => tasks(call).get(call),
      'tasks/update': call => tasks(call).update(call),
      'tasks/cancel': call => tasks(call).cancel(call),
      'io.mcp-host/tasks/list': call => tasks(call).list(call),
    },
    nameHeaders: { 'tasks/get': 'taskId', 'tasks/update': 'taskId', 'tasks/cancel': 'taskId' },
    results: { 'tools/call': ['task'] },
    listenFilters: { taskIds: (wanted, call) => followers(call).filter(wanted, call) },
    toolKeys: { task: { around: (call, tool, run) => tasks(call).around(call, tool, run) } },
  })

  function serve(store: TaskStore, routes: readonly McpRoute[], given: Services): Service {
    const queues = () =>
      new Map(
        routes.flatMap(route =>
          tasksOf(given, route).map(tool => [queueOf(route.path, tool.name), concurrencyOf(tool)] as const),
        ),
      )
    const worker = new TaskWorker({
      transport: transportOf(host, given),
      store,
      settings,
      routes: new Map(routes.map(route => [route.path, route])),
      ours,
      ended,
      log: host.log,
      queues,
      inFlight: given.inFlight,
    })
    const served = new Tasks({ store, settings, extension, ours, queued: (queue, most) => worker.serve(queue, most) })
    return { tasks: served, followers: new Followers(store, served), worker }
  }

  host.serving(given => {
    const stores = new Map<TaskStore, McpRoute[]>()
    for (const route of host.routes) {
      const store = given.slot('taskStore', route)
      stores.set(store, [...(stores.get(store) ?? []), route])
    }
    for (const [store, routes] of stores) {
      const service = serve(store, routes, given)
      services.add(service)
      for (const { path } of routes) byRoute.set(path, service)
      host.starting(() => {
        const unwatch = store.watch(news => service.followers.hear(news))
        host.closing(unwatch)
        service.worker.start()
      })
      host.checking(() => {
        checkStore(host, store, options.role)
        for (const route of routes) checkTools(host, tasksOf(given, route))
      })
    }
    host.draining(() => {
      for (const { worker } of services) worker.drain()
    })
    host.closing(async () => {
      for (const { worker } of services) await worker.close()
    })
  })
}
