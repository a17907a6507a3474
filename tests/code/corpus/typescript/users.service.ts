import { Injectable, NotFoundException } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { User } from './user.entity';

export interface Page<T> {
  readonly items: T[];
  total: number;
  next?: string;
}

type Filter = Partial<Pick<User, 'email' | 'role'>> & { search?: string };

export enum Role {
  Admin = 'admin',
  Reader = 'reader',
}

@Injectable()
export class UsersService {
  private readonly cache = new Map<string, User>();

  constructor(
    @InjectRepository(User)
    private readonly users: Repository<User>,
  ) {}

  async find(filter: Filter = {}, page = 1): Promise<Page<User>> {
    const [items, total] = await this.users.findAndCount({
      where: { ...filter },
      take: 20,
      skip: (page - 1) * 20,
    });
    return { items, total, next: total > page * 20 ? `?page=${page + 1}` : undefined };
  }

  async one(id: string): Promise<User> {
    const user = this.cache.get(id) ?? (await this.users.findOneBy({ id }));
    if (!user) {
      throw new NotFoundException(`user ${id}`);
    }
    this.cache.set(id, user);
    return user;
  }

  isAdmin(user: User): user is User & { role: Role.Admin } {
    return user.role === Role.Admin;
  }
}
