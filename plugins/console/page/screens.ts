// The screens: URL, title, group in the navigation, and the module that is loaded when the screen opens.
import type { ComponentType } from 'preact'
import Overview from './screens/overview.tsx'

export interface Screen {
  readonly path: string
  readonly title: string
  readonly group: 'Now' | 'Surface' | 'Operation'
  readonly load: () => Promise<{ readonly default: ComponentType }>
}

export const SCREENS: readonly Screen[] = [
  { path: '/', title: 'Overview', group: 'Now', load: async () => ({ default: Overview }) },
  { path: '/calls', title: 'Live calls', group: 'Now', load: () => import('./screens/calls.tsx') },
  { path: '/denials', title: 'Denials', group: 'Now', load: () => import('./screens/denials.tsx') },
  { path: '/sessions', title: 'Sessions', group: 'Now', load: () => import('./screens/sessions.tsx') },
  { path: '/tasks', title: 'Tasks', group: 'Now', load: () => import('./screens/tasks.tsx') },
  { path: '/upstreams', title: 'Upstream servers', group: 'Now', load: () => import('./screens/upstreams.tsx') },
  { path: '/routes', title: 'Routes', group: 'Surface', load: () => import('./screens/routes.tsx') },
  { path: '/tools', title: 'Tools', group: 'Surface', load: () => import('./screens/tools.tsx') },
  { path: '/access', title: 'Access', group: 'Surface', load: () => import('./screens/access.tsx') },
  { path: '/try', title: 'Try a tool', group: 'Surface', load: () => import('./screens/try.tsx') },
  { path: '/clients', title: 'Clients', group: 'Operation', load: () => import('./screens/clients.tsx') },
  { path: '/audit', title: 'Audit', group: 'Operation', load: () => import('./screens/audit.tsx') },
  { path: '/config', title: 'Configuration', group: 'Operation', load: () => import('./screens/config.tsx') },
]
