// The store contracts against one SQLite file, with one thread per node and a new file per check.
import {
  eventStoreContract,
  grantStoreContract,
  sessionStoreContract,
  taskStoreContract,
} from '../../../core/testing.ts'
import { describeContracts } from '../../support/describe-contracts.ts'
import { closeFiles, hasSqlite, newFile, type OpenedFile, openFile } from './support/sqlite-files.ts'

const onFile = <Service>(serviceOf: (file: OpenedFile) => Service) => ({
  shared: true,
  async open(count: number) {
    const file = newFile()
    const nodes = await Promise.all(Array.from({ length: count }, () => openFile(file)))
    return {
      nodes: nodes.map(serviceOf),
      close: async () => void (await Promise.all(nodes.map(({ writer }) => writer.close()))),
    }
  },
})

const contracts = {
  'Session store in SQLite': sessionStoreContract(onFile(({ sessions }) => sessions)),
  'Event store in SQLite': eventStoreContract(onFile(({ events }) => events)),
  'Grant store in SQLite': grantStoreContract(onFile(({ grants }) => grants)),
  'Task store in SQLite': taskStoreContract(onFile(({ tasks }) => tasks)),
}

if (hasSqlite) describeContracts(contracts, { after: closeFiles })
