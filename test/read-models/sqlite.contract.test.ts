import { sqliteReadModels } from '../support/read-model-drivers.ts';
import { describeReadModels } from './describe-read-models.ts';

describeReadModels(sqliteReadModels);
