// MPI as training programs use it: start-up, broadcast of the NCCL id, a few reductions.
#pragma once

typedef struct mp_mpi_comm* MPI_Comm;
typedef struct mp_mpi_type* MPI_Datatype;
typedef struct mp_mpi_op* MPI_Op;
typedef struct mp_mpi_request* MPI_Request;
typedef struct mp_mpi_group* MPI_Group;
typedef struct MPI_Status { int MPI_SOURCE, MPI_TAG, MPI_ERROR; } MPI_Status;
extern MPI_Comm MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_SELF;
extern MPI_Datatype MPI_BYTE, MPI_CHAR, MPI_INT, MPI_LONG, MPI_FLOAT, MPI_DOUBLE, MPI_UINT64_T, MPI_INT64_T,
    MPI_UNSIGNED, MPI_UNSIGNED_LONG, MPI_LONG_LONG, MPI_UNSIGNED_CHAR, MPI_C_BOOL, MPI_CXX_BOOL, MPI_DATATYPE_NULL;
extern MPI_Op MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_LAND, MPI_LOR;
extern MPI_Status* MPI_STATUS_IGNORE;
extern MPI_Status* MPI_STATUSES_IGNORE;
#define MPI_SUCCESS 0
#define MPI_MAX_ERROR_STRING 512
#define MPI_MAX_PROCESSOR_NAME 256
#define MPI_THREAD_MULTIPLE 3
#define MPI_IN_PLACE ((void*)-1)
#define MPI_COMM_TYPE_SHARED 1
#define MPI_INFO_NULL nullptr
extern "C" {
int MPI_Init(int*, char***);
int MPI_Init_thread(int*, char***, int, int*);
int MPI_Initialized(int*);
int MPI_Finalize();
int MPI_Abort(MPI_Comm, int);
int MPI_Barrier(MPI_Comm);
int MPI_Comm_rank(MPI_Comm, int*);
int MPI_Comm_size(MPI_Comm, int*);
int MPI_Comm_split(MPI_Comm, int, int, MPI_Comm*);
int MPI_Comm_split_type(MPI_Comm, int, int, void*, MPI_Comm*);
int MPI_Comm_free(MPI_Comm*);
int MPI_Get_processor_name(char*, int*);
int MPI_Error_string(int, char*, int*);
int MPI_Bcast(void*, int, MPI_Datatype, int, MPI_Comm);
int MPI_Reduce(const void*, void*, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
int MPI_Allreduce(const void*, void*, int, MPI_Datatype, MPI_Op, MPI_Comm);
int MPI_Allgather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, MPI_Comm);
int MPI_Gather(const void*, int, MPI_Datatype, void*, int, MPI_Datatype, int, MPI_Comm);
int MPI_Send(const void*, int, MPI_Datatype, int, int, MPI_Comm);
int MPI_Recv(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*);
int MPI_Isend(const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int MPI_Irecv(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*);
int MPI_Wait(MPI_Request*, MPI_Status*);
int MPI_Waitall(int, MPI_Request*, MPI_Status*);
double MPI_Wtime();
}
